package disk

import (
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
)

const (
	sector = 512  // is written whole or not at all
	block  = 4096 // is what the kernel writes back as one
)

// Image is what a disk may hold. Apply brings it forward, Lose makes what a loss of power
// leaves.
type Image struct {
	root    uint64
	files   map[uint64]*file
	folders map[uint64]*folder
}

// file has all versions that may be on disk, the durable one first.
type file struct {
	sectors map[int64][]version // by number
	sizes   []int64
	size    bool // the last size waits for a sync
}

// version is the content of a sector. Those that are no longer dirty wait for no sync: one
// of them failed.
type version struct {
	data  []byte
	dirty bool
}

// folder has the durable names, and what happened since.
type folder struct {
	names   map[string]uint64
	changes []change
}

// change sets a name, or removes it if file is 0.
type change struct {
	name string
	file uint64
	from *folder // of a rename
	was  string
}

// NewImage returns the image of a folder that is empty and durable.
func NewImage(path string) *Image {
	root := inode(path)
	return &Image{root: root, files: map[uint64]*file{}, folders: map[uint64]*folder{root: {names: map[string]uint64{}}}}
}

func (i *Image) file(number uint64) *file {
	if i.files[number] == nil {
		i.files[number] = &file{sectors: map[int64][]version{}, sizes: []int64{0}}
	}
	return i.files[number]
}

// Apply brings the image forward by an operation.
func (i *Image) Apply(op *Op) {
	if op.Err != nil && op.Kind != Sync {
		return
	}
	switch op.Kind {
	case Write:
		i.file(op.File).write(op.Offset, op.Data)
	case Truncate:
		i.file(op.File).truncate(op.Offset)
	case Sync:
		if found := i.folders[op.File]; found != nil && op.Err == nil {
			found.sync()
		} else if found == nil {
			i.file(op.File).sync(op.Err == nil)
		}
	case Create, Mkdir, Remove, Rename, Link:
		i.rename(op)
	}
}

func (i *Image) rename(op *Op) {
	in := i.folders[op.Folder]
	if in == nil {
		return // not below the root
	}
	c := change{name: op.Name, file: op.File}
	switch op.Kind {
	case Mkdir:
		i.folders[op.File] = &folder{names: map[string]uint64{}}
	case Create:
		i.files[op.File] = nil // numbers are used again
		i.file(op.File)
	case Remove:
		c.file = 0
	case Rename:
		c.from, c.was = i.folders[op.FromFolder], op.FromName
	}
	in.changes = append(in.changes, c)
}

func (f *file) write(offset int64, data []byte) {
	for len(data) > 0 {
		at := offset / sector
		content := make([]byte, sector)
		copy(content, f.last(at))
		n := copy(content[offset%sector:], data)
		f.sectors[at] = append(f.versions(at), version{content, true})
		f.dirty(at)
		offset, data = offset+int64(n), data[n:]
	}
	if offset > f.sizes[len(f.sizes)-1] {
		f.sizes, f.size = append(f.sizes, offset), true
	}
}

// dirty has the kernel write back the whole block of a sector.
func (f *file) dirty(at int64) {
	first := at - at%(block/sector)
	for n := first; n < first+block/sector; n++ {
		if all := f.sectors[n]; len(all) > 0 {
			all[len(all)-1].dirty = true
		}
	}
}

func (f *file) versions(at int64) []version {
	if f.sectors[at] == nil {
		return []version{{data: make([]byte, sector)}}
	}
	return f.sectors[at]
}

func (f *file) last(at int64) []byte {
	all := f.versions(at)
	return all[len(all)-1].data
}

func (f *file) truncate(to int64) {
	for at, all := range f.sectors {
		if at*sector >= to {
			f.sectors[at] = append(all, version{make([]byte, sector), true})
		}
	}
	f.sizes, f.size = append(f.sizes, to), true
}

// sync makes the last versions durable. If it fails, they are clean all the same.
func (f *file) sync(ok bool) {
	for at, all := range f.sectors {
		last := all[len(all)-1]
		if !last.dirty {
			continue
		}
		last.dirty = false
		if all[len(all)-1] = last; ok {
			f.sectors[at] = []version{last}
		}
	}
	if ok && f.size {
		f.sizes, f.size = f.sizes[len(f.sizes)-1:], false
	}
}

func (f *folder) sync() {
	for _, c := range f.changes {
		c.apply(f)
	}
	f.changes = nil
}

func (c *change) apply(f *folder) {
	if c.from != nil && c.from.names[c.was] == c.file {
		delete(c.from.names, c.was)
	}
	if c.file == 0 {
		delete(f.names, c.name)
		return
	}
	f.names[c.name] = c.file
}

// Lose writes to a new folder what a loss of power at this moment leaves, as random says.
func (i *Image) Lose(path string, random *rand.Rand) error {
	return i.loseFolder(i.root, path, random)
}

func (i *Image) loseFolder(number uint64, path string, random *rand.Rand) error {
	if err := os.MkdirAll(path, 0o700); err != nil {
		return err
	}
	in := i.folders[number]
	left := &folder{names: map[string]uint64{}}
	maps.Copy(left.names, in.names)
	for _, c := range in.changes {
		if c.from == in {
			c.from = left
		} else {
			c.from = nil
		}
		if random.IntN(2) == 0 {
			c.apply(left)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(left.names)) { // the same for the same seed
		number, to := left.names[name], filepath.Join(path, name)
		if i.folders[number] != nil {
			if err := i.loseFolder(number, to, random); err != nil {
				return err
			}
		} else if err := os.WriteFile(to, i.file(number).lose(random), 0o600); err != nil {
			return err
		}
	}
	return nil
}

// lose returns one of the contents that a file may have.
func (f *file) lose(random *rand.Rand) []byte {
	content := make([]byte, f.sizes[random.IntN(len(f.sizes))])
	how := random.IntN(4) // sometimes all of it was written, or nothing
	for _, at := range slices.Sorted(maps.Keys(f.sectors)) {
		all := f.sectors[at]
		chosen := random.IntN(len(all))
		switch how {
		case 0:
			chosen = 0
		case 1:
			chosen = len(all) - 1
		}
		if offset := at * sector; offset < int64(len(content)) {
			copy(content[offset:], all[chosen].data)
		}
	}
	return content
}

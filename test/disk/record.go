package disk

// Kind is what an operation does.
type Kind uint8

// The kinds.
const (
	Write    Kind = iota // Data at Offset of File
	Sync                 // of a file or a folder
	Truncate             // File to Offset bytes
	Create               // a file
	Mkdir                // a folder
	Remove               // a name
	Rename
	Link
	Print // Data to standard output
)

// Op is something that a process did, in the order in which it began. A Sync counts from
// the next one on.
type Op struct {
	Kind   Kind
	File   uint64 // number of the file or folder
	Offset int64
	Data   []byte
	Err    error // how it failed

	// Of names: the folder of the new name, and of the one before.
	Folder, FromFolder uint64
	Name, FromName     string
}

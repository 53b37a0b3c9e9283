package send

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/google/renameio/v2"
	"github.com/rs/zerolog"

	"hdsd/notify"
)

const (
	keptFile     = "notifications.json"
	maxKept      = 64 << 20 // bytes
	keepPause    = 200 * time.Millisecond
	keepPatience = time.Minute // before a disk that failed is tried again
)

// kept is what a receiver was told and is not over.
type kept struct {
	Name   string          `json:"name"`
	Type   string          `json:"type"`
	Target string          `json:"target"` // a hash, since a URL may have a secret
	Open   []notify.Notice `json:"open"`
}

// fingerprint tells targets apart. How hdsd authenticates itself there is no part of it.
func fingerprint(t Target) string {
	sum := sha256.Sum256([]byte(strings.Join([]string{t.Type, t.URL}, "\x00")))
	return hex.EncodeToString(sum[:8])
}

// keeper keeps on disk what receivers were told.
type keeper struct {
	path    string // empty: nothing is kept
	log     zerolog.Logger
	told    func() []kept
	changed chan struct{}
	before  []kept // of before the start, until receivers are set
}

func newKeeper(dir string, log zerolog.Logger, told func() []kept) *keeper {
	k := &keeper{log: log, told: told, changed: make(chan struct{}, 1)}
	if dir == "" {
		return k
	}
	k.path = filepath.Join(dir, keptFile)
	if err := k.read(); err != nil && !errors.Is(err, fs.ErrNotExist) {
		k.failed(err)
	}
	return k
}

func (k *keeper) failed(err error) {
	k.log.Error().Str("event", "notifications_not_kept").Err(err).
		Msg("what receivers were told is not kept on disk, or cannot be read: after a restart they may be told again, or not told that something is over")
}

func (k *keeper) read() error {
	file, err := os.Open(k.path)
	if err != nil {
		return err
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, maxKept+1))
	if err != nil {
		return err
	}
	if len(data) > maxKept {
		return fmt.Errorf("%s is larger than %d bytes", k.path, maxKept)
	}
	if err := json.Unmarshal(data, &k.before); err != nil {
		return fmt.Errorf("%s: %w", k.path, err)
	}
	return nil
}

// restored returns what a receiver was told before the start and is not known to be over.
func (k *keeper) restored(name string, t Target) []notify.Notice {
	for i := range k.before {
		if b := &k.before[i]; b.Name == name && b.Target == fingerprint(t) {
			return b.Open
		}
	}
	return nil
}

// mark says that something has changed. It does not wait.
func (k *keeper) mark() {
	select {
	case k.changed <- struct{}{}:
	default:
	}
}

// run writes what has changed until ctx ends, and once then.
func (k *keeper) run(ctx context.Context) {
	if k.path == "" {
		<-ctx.Done()
		return
	}
	for {
		select {
		case <-ctx.Done():
			_ = k.write() // the restart tells of what is missing
			return
		case <-k.changed:
		}
		pause := keepPause
		if err := k.write(); err != nil {
			k.failed(err)
			k.mark()
			pause = keepPatience
		}
		select { // so that a storm is not written notice by notice
		case <-ctx.Done():
		case <-time.After(pause):
		}
	}
}

func (k *keeper) write() error {
	data, err := json.Marshal(k.told())
	if err != nil {
		return err
	}
	return renameio.WriteFile(k.path, data, 0o600, renameio.WithTempDir(filepath.Dir(k.path)))
}

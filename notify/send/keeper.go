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
	keepPatience = time.Minute // pause after a failure of the disk
)

// kept is the open notices of a receiver.
type kept struct {
	Name   string          `json:"name"`
	Type   string          `json:"type"`
	Target string          `json:"target"` // a hash, since a URL may have a secret
	Open   []notify.Notice `json:"open"`
}

// fingerprint distinguishes targets, regardless of credentials.
func fingerprint(t Target) string {
	sum := sha256.Sum256([]byte(strings.Join([]string{t.Type, t.URL}, "\x00")))
	return hex.EncodeToString(sum[:8])
}

// keeper keeps open notices on disk.
type keeper struct {
	path        string // empty: nothing is kept
	log         zerolog.Logger
	openNotices func() []kept
	changed     signal // something has
	before      []kept // from before the start, until receivers are set
}

func newKeeper(dir string, log zerolog.Logger, openNotices func() []kept) *keeper {
	k := &keeper{log: log, openNotices: openNotices, changed: newSignal()}
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

// restored returns the notices of a receiver from before the start that have not ended.
func (k *keeper) restored(name string, t Target) []notify.Notice {
	for i := range k.before {
		if b := &k.before[i]; b.Name == name && b.Target == fingerprint(t) {
			return b.Open
		}
	}
	return nil
}

// run writes changes until ctx ends, and once then.
func (k *keeper) run(ctx context.Context) {
	if k.path == "" {
		<-ctx.Done()
		return
	}
	for {
		select {
		case <-ctx.Done():
			_ = k.write() // the restart repeats missing notices
			return
		case <-k.changed:
		}
		pause := keepPause
		if err := k.write(); err != nil {
			k.failed(err)
			k.changed.raise()
			pause = keepPatience
		}
		select { // batches the notices of a storm
		case <-ctx.Done():
		case <-time.After(pause):
		}
	}
}

func (k *keeper) write() error {
	data, err := json.Marshal(k.openNotices())
	if err != nil {
		return err
	}
	return renameio.WriteFile(k.path, data, 0o600, renameio.WithTempDir(filepath.Dir(k.path)))
}

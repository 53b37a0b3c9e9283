package xds

import (
	"context"
	"os"
	"path/filepath"
	"time"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"github.com/google/renameio/v2"
)

const (
	// A change is on disk after snapshotEvery. It may take longer, so that writing takes at most
	// one part in snapshotShare of the time.
	snapshotEvery = time.Second
	snapshotShare = 20

	// The largest lag of the stored time of the last contact.
	contactEvery = time.Minute
)

// keeper keeps the known resources in the snapshot. The file's modification time is
// that of the last contact with the server. The goroutine of run owns it.
type keeper struct {
	*Source
	kept    bool // the file belongs to this source
	written int  // number of its updates
	contact time.Time
}

// run writes after each change, and at the end.
func (k *keeper) run(ctx context.Context) {
	timer := time.NewTimer(snapshotEvery)
	defer timer.Stop()
	for last := false; !last; {
		select {
		case <-ctx.Done():
		case <-timer.C:
		}
		last = ctx.Err() != nil
		began := time.Now()
		if err := k.keep(began, last); err != nil {
			k.options.Log.Error().Str("event", "upstream_snapshot_trouble").Str("source", k.options.Name).Err(err).
				Msg("the snapshot of the management server's resources cannot be written")
		}
		timer.Reset(max(snapshotEvery, snapshotShare*time.Since(began)))
	}
}

// keep updates the file.
func (k *keeper) keep(now time.Time, last bool) error {
	k.mu.Lock()
	updates, contact := k.updates, k.lastContact(now)
	var resources []*discoveryv3.Resource
	if updates != k.written {
		resources = k.knownResources(now)
	}
	k.mu.Unlock()
	if updates != k.written {
		if err := k.write(now, resources); err != nil {
			return err
		}
		k.kept, k.written, k.contact = true, updates, time.Time{}
	}
	due := k.contact.IsZero() || contact.Sub(k.contact) >= contactEvery || last
	if !k.kept || contact.IsZero() || !due {
		return nil
	}
	k.contact = contact
	return os.Chtimes(k.options.Snapshot, contact, contact)
}

func (k *keeper) write(now time.Time, resources []*discoveryv3.Resource) error {
	file, err := renameio.NewPendingFile(k.options.Snapshot, renameio.WithTempDir(filepath.Dir(k.options.Snapshot)),
		renameio.WithPermissions(0o600), renameio.WithExistingPermissions())
	if err != nil {
		return err
	}
	defer file.Cleanup() //nolint:errcheck // the next start removes what is left
	if err := writeTo(file, k.servers(), now, resources); err != nil {
		return err
	}
	return file.CloseAtomicallyReplace()
}

// lastContact returns when the server last answered for all types: now while it is
// connected; zero if unknown.
func (s *Source) lastContact(now time.Time) time.Time {
	contact := now
	for _, t := range []*table{s.clusters, s.assignments} {
		if s.answered(t) || !t.asks(everyName) {
			continue
		}
		if start := s.shown(t).start; start.Before(contact) {
			contact = start
		}
	}
	return contact
}

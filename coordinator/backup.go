package coordinator

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"github.com/rs/zerolog"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

	"hdsd/api"
	"hdsd/internal/reason"
	"hdsd/store"
)

// backups makes copies of the database for clients, one at a time.
type backups struct {
	store    *store.Store
	stopping <-chan struct{}
	log      zerolog.Logger
	last     prometheus.Gauge
	busy     atomic.Bool
}

func newBackups(s *store.Store, stopping <-chan struct{}, to prometheus.Registerer, log zerolog.Logger) *backups {
	return &backups{store: s, stopping: stopping, log: log, last: promauto.With(to).NewGauge(prometheus.GaugeOpts{
		Name: "hdsd_last_backup_timestamp_seconds", Help: "When a client last took a whole copy of the database; 0 if none did since the start.",
	})}
}

// Backup implements api.Controller.
func (c *control) Backup(ctx context.Context) (api.Copy, error) {
	copied, err := c.begin(ctx)
	if err == nil {
		c.audit(ctx, time.Now(), store.AuditEntry{Action: "Backup", After: fmt.Sprintf("%d bytes", copied.Size())})
	}
	return copied, err
}

// begin makes a copy for a client.
func (c *backups) begin(ctx context.Context) (api.Copy, error) {
	if !c.busy.CompareAndSwap(false, true) {
		return nil, reason.New(codes.ResourceExhausted, reason.BackupRuns, "another backup is in progress: try again when it is done")
	}
	d := &backup{backups: c, start: time.Now()}
	if p, ok := peer.FromContext(ctx); ok {
		d.client = p.Addr.String()
	}
	d.ctx, d.cancel = context.WithCancelCause(ctx)
	go d.watch()
	file, err := c.store.Copy(d.ctx)
	if err == nil {
		d.file = file
		var info os.FileInfo
		if info, err = file.Stat(); err == nil {
			d.size = info.Size()
			return d, nil
		}
	}
	if cause := context.Cause(d.ctx); cause != nil {
		err = cause
	}
	d.Close(err)
	if errors.Is(err, store.ErrNoRoom) {
		err = status.Error(codes.FailedPrecondition, err.Error())
	}
	return nil, err
}

// backup is a copy on its way to a client.
type backup struct {
	backups *backups
	client  string // address
	start   time.Time
	ctx     context.Context
	cancel  context.CancelCauseFunc
	file    *os.File // nil if the copy failed
	size    int64
}

// watch ends the backup when hdsd stops. It returns when the backup is closed.
func (d *backup) watch() {
	select {
	case <-d.backups.stopping:
		d.cancel(ErrStopping)
	case <-d.ctx.Done():
	}
}

// Context implements api.Copy.
func (d *backup) Context() context.Context { return d.ctx }

// Size implements api.Copy.
func (d *backup) Size() int64 { return d.size }

// Read implements api.Copy.
func (d *backup) Read(p []byte) (int, error) {
	if d.ctx.Err() != nil {
		return 0, context.Cause(d.ctx)
	}
	return d.file.Read(p)
}

// Close implements api.Copy.
func (d *backup) Close(failure error) {
	d.cancel(nil)
	if d.file != nil {
		_ = d.file.Close() // opened for reading only
	}
	if failure != nil {
		d.backups.log.Warn().Str("event", "backup_failed").Str("client", d.client).Err(failure).Msg("a client did not get its copy of the database")
	} else {
		d.backups.log.Info().Str("event", "backup").Str("client", d.client).Int64("bytes", d.size).Dur("took", time.Since(d.start)).
			Msg("a client took a copy of the database")
		d.backups.last.SetToCurrentTime()
	}
	d.backups.busy.Store(false)
}

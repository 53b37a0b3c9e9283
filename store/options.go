package store

import "time"

// Options says how to keep the history. The zero Options is good.
type Options struct {
	// Retention is how long transitions are kept; 0 is for ever.
	Retention time.Duration

	// MaxBytes bounds the pages in use; 0 is no bound. Near it there is an alarm, and then hdsd
	// deletes the oldest transitions early, nothing else. One transaction may exceed it for a
	// moment.
	MaxBytes int64

	// LockTimeout is how long Open waits for another process, 5 s by default.
	LockTimeout time.Duration

	// MaxPending bounds the transitions that wait for the disk or are being written, 524,288 by
	// default. More cost memory; fewer are dropped sooner when the disk fails.
	MaxPending int

	// OnError gets errors after Open: those of the disk, ErrDropped, ErrSkipped. It must not
	// block or call Close.
	OnError func(error)

	// OnDisk is called with an error when the disk begins to fail, and with nil when it
	// recovers. It must not block or call Close.
	OnDisk func(error)

	// OnGap is called once a new gap is on disk. It must not block or call Close.
	OnGap func(Gap)

	// OnAuditGap is called once an entry that stands for missing ones is on disk. It must not
	// block or call Close.
	OnAuditGap func(AuditGap)

	// OnQuota is called when the history comes near MaxBytes, when it no longer is, and when
	// transitions were deleted early. It must not block or call Close.
	OnQuota func(Quota)

	// OnClock is called when the wall clock becomes doubted and when it is believed
	// again. It must not block or call Close.
	OnClock func(Clock)

	now        func() time.Time
	uptime     func() time.Duration
	migrations []migration
	mapSize    int
	maxSize    int
	pruneEvery time.Duration
	noSync     bool // only for tests that do not cut the power
}

func (o Options) withDefaults() Options {
	set := func(d *time.Duration, value time.Duration) {
		if *d <= 0 {
			*d = value
		}
	}
	set(&o.LockTimeout, defaultLockTimeout)
	set(&o.pruneEvery, time.Hour)
	if o.MaxPending <= 0 {
		o.MaxPending = 524_288
	}
	if o.OnError == nil {
		o.OnError = func(error) {}
	}
	if o.OnClock == nil {
		o.OnClock = func(Clock) {}
	}
	if o.OnDisk == nil {
		o.OnDisk = func(error) {}
	}
	if o.OnQuota == nil {
		o.OnQuota = func(Quota) {}
	}
	if o.OnGap == nil {
		o.OnGap = func(Gap) {}
	}
	if o.OnAuditGap == nil {
		o.OnAuditGap = func(AuditGap) {}
	}
	if o.now == nil {
		o.now = time.Now
	}
	if o.uptime == nil {
		start := time.Now()
		o.uptime = func() time.Duration { return time.Since(start) }
	}
	if o.migrations == nil {
		o.migrations = migrations
	}
	if o.mapSize == 0 {
		o.mapSize = mapSize
	}
	return o
}

// version is the newest schema version.
func (o *Options) version() uint32 { return uint32(len(o.migrations)) + oldestSchema }

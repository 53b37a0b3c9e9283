package maintenance

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	configv1 "hdsd/gen/hdsd/config/v1"
	"hdsd/log/etcd"
	"hdsd/store"
)

const (
	// lockPatience is how long a founding waits for the database, which a running hdsd has open.
	lockPatience = time.Second

	// etcdPatience is how long it waits for etcd.
	etcdPatience = 10 * time.Second
)

// Founding begins a fleet with the history of the database of a replica. It owns both until Close.
type Founding struct {
	Began    time.Time    // the history
	Database store.Cursor // place of the database in the log of its fleet
	Etcd     etcd.Contents
	After    uint64 // entry after which the log of the new fleet goes on

	isEmpty  bool // the database has nothing
	database *store.Store
	prefix   *etcd.Prefix
}

// Open opens the database of a stopped replica, and reads what etcd has. It changes nothing.
func Open(ctx context.Context, c *configv1.Config) (_ *Founding, err error) {
	if c.GetReplication() == nil {
		return nil, errors.New("the configuration has no replication: a coordinator alone has no fleet")
	}
	options, err := Options(c)
	if err != nil {
		return nil, err
	}
	if _, err := os.Stat(c.GetDataDir()); err != nil {
		return nil, fmt.Errorf("data_dir: %w", err)
	}
	f := &Founding{}
	defer func() {
		if err != nil {
			_ = f.Close()
		}
	}()
	f.database, err = store.Open(ctx, c.GetDataDir(), store.Options{
		Retention: c.GetHistory().GetRetention().AsDuration(), MaxBytes: int64(c.GetHistory().GetMaxBytes()), LockTimeout: lockPatience,
	})
	if err != nil {
		return nil, err
	}
	state, err := f.database.State()
	if err == nil {
		f.Began, err = f.database.Began()
	}
	if err != nil {
		return nil, err
	}
	f.Database = f.database.Cursor()
	f.isEmpty, f.After = state.IsEmpty() && f.Database.Sequence == 0, f.Database.Sequence+1
	if f.prefix, err = etcd.OpenPrefix(options); err != nil {
		return nil, err
	}
	waiting, cancel := context.WithTimeout(ctx, etcdPatience)
	defer cancel()
	f.Etcd, err = f.prefix.Read(waiting)
	return f, err
}

// Close closes the database.
func (f *Founding) Close() (err error) {
	if f.prefix != nil {
		err = f.prefix.Close()
	}
	if f.database != nil {
		err = errors.Join(err, f.database.Close())
	}
	return err
}

// Running returns an error that names the replicas with a session; nil without any.
func (f *Founding) Running() error {
	if len(f.Etcd.Members) == 0 && f.Etcd.Leader == "" {
		return nil
	}
	var running []string
	for _, m := range f.Etcd.Members {
		running = append(running, fmt.Sprintf("%s (%s)", m.ID, m.Address))
	}
	return fmt.Errorf("etcd has a session of %s: stop all replicas; the session of one that was killed ends after its session_ttl",
		strings.Join(append(running, f.Etcd.Leader)[:max(1, len(running))], ", "))
}

// Doubt returns a reason why an operator may not want to found the fleet; nil without one.
func (f *Founding) Doubt() error {
	e, own := &f.Etcd, f.Database.Fleet != "" && f.Database.Fleet == f.Etcd.Fleet
	switch {
	case f.isEmpty:
		return errors.New("the database has no history: found the fleet from the replica with the longest one")
	case own && e.Head > f.Database.Sequence:
		return fmt.Errorf("etcd has entries of this fleet up to %d, and the database has them up to %d: a start of the replica reads them, or copies another one's database", e.Head, f.Database.Sequence)
	case own && e.Head == f.Database.Sequence && !f.Database.Diverged && e.Entries > 0:
		return errors.New("etcd has the log up to the end of this database: a start of the replica goes on with it")
	case own && e.Head == f.Database.Sequence && !f.Database.Diverged:
		return errors.New("the fleet is founded from this database already: start the replica")
	case !own && e.Entries > 0 && e.Fleet != "":
		return fmt.Errorf("the prefix belongs to fleet %s, with %d entries, and the database does not: see that replication.etcd.prefix is right", e.Fleet, e.Entries)
	case !own && e.Head > f.After:
		return fmt.Errorf("the prefix belongs to fleet %s, which begins with a longer history, of %d entries: found the fleet from that replica", e.Fleet, e.Head)
	}
	return nil
}

// Found empties the prefix, and makes the database the first one of a new fleet. It returns the fleet.
func (f *Founding) Found(ctx context.Context) (fleet string, err error) {
	fleet = rand.Text()
	waiting, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	if err := f.prefix.Found(waiting, f.Etcd, fleet, f.After); err != nil {
		return "", err
	}
	if err := f.database.SetFleet(ctx, fleet, f.After); err != nil {
		return "", fmt.Errorf("etcd has the new fleet, and the database not yet: repeat this: %w", err)
	}
	return fleet, nil
}

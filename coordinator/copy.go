package coordinator

import (
	"context"
	"errors"
	"fmt"
	"time"

	replicav1 "hdsd/gen/hdsd/replica/v1"
	"hdsd/log"
	"hdsd/log/etcd"
	"hdsd/replica/link"
	"hdsd/store"
)

const (
	// startPatience is how long a start waits for etcd. Without it, hdsd serves the stored health.
	startPatience = 5 * time.Second

	// sourcePause is the time between two attempts to get a copy.
	sourcePause = time.Second
)

// takeCopy replaces the database by a copy of another replica's, if the log begins after its cursor. It returns the
// open database and its state. It waits for a replica that has a copy until ctx ends.
func (r *replicas) takeCopy(ctx context.Context, state log.State, open func(context.Context) (*store.Store, error)) (*store.Store, log.State, error) {
	for waiting := false; ; waiting = true {
		fleet, sources := r.findSources(ctx, &state)
		if fleet == "" {
			return r.store, state, nil
		}
		for i := range sources {
			opened, err := r.copyFrom(ctx, &sources[i], fleet, open)
			if err == nil {
				state, err = opened.State()
				return opened, state, err
			}
			r.log.Warn().Str("event", "replica_not_copied").Str("replica", sources[i].ID).Err(err).Msg("this replica gives no copy of its database")
			if r.store == nil {
				return nil, state, err
			}
		}
		if !waiting {
			r.log.Warn().Str("event", "replica_awaited").
				Msg("the log does not have the entries after those of this database any more: hdsd waits for another replica that has them; start one")
		}
		select {
		case <-time.After(sourcePause):
		case <-ctx.Done():
			return r.store, state, context.Cause(ctx)
		}
	}
}

// findSources returns the replicas to copy the database of, and the fleet; none if this database goes on, or as long
// as etcd does not answer. Run tells what is wrong with the log.
func (r *replicas) findSources(ctx context.Context, state *log.State) (fleet string, sources []etcd.Member) {
	ctx, cancel := context.WithTimeout(ctx, startPatience)
	defer cancel()
	fleet, sources, err := r.engine.Behind(ctx, r.placeOf(state))
	if err != nil {
		return "", nil
	}
	return fleet, sources
}

// copyFrom replaces the database by a copy of a replica's, and opens it. After an error, the previous one is open,
// unless the disk fails.
func (r *replicas) copyFrom(ctx context.Context, from *etcd.Member, fleet string, open func(context.Context) (*store.Store, error)) (*store.Store, error) {
	conn, err := link.Dial(from.Address, r.credentials)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	stream, err := replicav1.NewPeersClient(conn).Copy(ctx, &replicav1.CopyRequest{Fleet: fleet})
	if err != nil {
		return nil, err
	}
	reader := &copyReader{stream: stream, cancel: cancel}
	if reader.rest, err = reader.next(firstPatience); err != nil { // the replica has no copy
		return nil, err
	}
	start := time.Now()
	err = r.store.Close()
	r.store = nil
	if err != nil {
		return nil, err
	}
	done, failure := store.Replace(ctx, r.config.GetDataDir(), reader, store.RestoreOptions{Accept: func(i *store.CopyInfo) error {
		if i.Cursor.Fleet != fleet || i.Cursor.Diverged {
			return fmt.Errorf("the copy is at %+v, which is not the log of fleet %q", i.Cursor, fleet)
		}
		return nil
	}})
	if r.store, err = open(ctx); err != nil {
		return nil, errors.Join(failure, err)
	}
	if failure == nil {
		r.log.Info().Str("event", "database_copied").Str("replica", from.ID).Str("kept", done.Kept).Dur("took", time.Since(start)).
			Msg("this replica has the database of another one now; its previous one stays beside it")
	}
	return r.store, failure
}

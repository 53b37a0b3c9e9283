package etcd

import (
	"context"
	"errors"
	"fmt"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
)

// pageEntries bounds a page; with entries of the largest size it stays below maxMessage. After an error, pages
// are half as large, down to one entry: a slow connection cannot carry more within callTimeout. After an answer,
// they have one entry more.
const pageEntries = 48

// errBroken reports a gap in the events of a watch. The follower reads the log again from its cursor.
var errBroken = errors.New("a watch of the log has a gap")

// Follow calls take with each entry after a position, once and in order: first the present entries,
// then new ones. It returns the error of take or of ctx; ErrTrimmed if the entry after the position
// is gone; ErrReplaced if the entry there is another one; or an error of Join, as it checks the
// prefix each time it reads the log. The function take may keep the payload. While it is busy, etcd
// holds back the next entries.
func (l *Log) Follow(ctx context.Context, after Position, take func(Entry) error) error {
	ctx, cancel := l.client.bound(ctx)
	defer cancel()
	f := &follower{log: l, Position: after, page: pageEntries, take: take}
	for n := 0; ; n++ {
		before := f.Sequence
		err := f.run(ctx)
		switch {
		case f.refused != nil:
			return f.refused
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case isFinal(err):
			l.client.board.clear(TaskFollow)
			return err
		case errors.Is(err, errBroken) && f.Sequence != before:
			n = 0
			continue
		}
		if f.Sequence != before {
			n = 0
		}
		l.client.board.fail(TaskFollow, err)
		sleep(ctx, pause(n))
	}
}

// follower reads the log for one call of Follow.
type follower struct {
	log *Log
	Position
	page    int64 // number of entries of the next page
	take    func(Entry) error
	refused error // of take
}

// run reads the present entries, then watches the log until an error.
func (f *follower) run(ctx context.Context) error {
	c := f.log.client
	revision, err := f.read(ctx)
	if err != nil {
		return err
	}
	c.board.clear(TaskFollow)
	intervals := []interval{{c.keys.log(), end(c.keys.log())}}
	puts := []pb.WatchCreateRequest_FilterType{pb.WatchCreateRequest_NODELETE}
	return c.watch(ctx, "following the log", revision, intervals, puts, func(response *pb.WatchResponse) error {
		for _, event := range response.Events {
			if err := f.entry(event.Kv, errBroken); err != nil {
				return err
			}
		}
		return nil
	})
}

// read takes the present entries after the cursor, page by page, and returns the revision of the
// last page.
func (f *follower) read(ctx context.Context) (revision int64, err error) {
	c := f.log.client
	gap := ErrDamaged // the first page comes with the extent of the log, which explains a gap
	for first := true; ; first = false {
		request := &pb.TxnRequest{Success: []*pb.RequestOp{read(&pb.RangeRequest{Key: c.keys.entry(f.Sequence + 1), RangeEnd: end(c.keys.log()), Limit: f.page})}}
		if first {
			request.Success = append(append(request.Success, c.keys.measure()...), get(c.keys.entry(f.Sequence)))
		}
		answer, err := c.conn.transact(ctx, "reading the log", request)
		if err != nil {
			f.page = smaller(f.page)
			return 0, err
		}
		if first {
			if f.Position, err = f.log.verify(answer, 1, f.Position); err != nil {
				return 0, err
			}
		}
		f.page = larger(f.page)
		page := answer.Responses[0].GetResponseRange()
		for _, kv := range page.GetKvs() {
			if err := f.entry(kv, gap); err != nil {
				return 0, err
			}
		}
		if !page.More {
			return answer.Header.GetRevision(), nil
		}
		gap = errBroken // trimmed meanwhile, or damaged: the next first page knows
	}
}

// smaller returns the number of entries of the page after an error.
func smaller(page int64) int64 { return max(1, page/2) }

// larger returns the number of entries of the page after an answer.
func larger(page int64) int64 { return min(page+1, pageEntries) }

// entry takes the next entry, and skips earlier ones. It returns gap if entries are missing.
func (f *follower) entry(kv *mvccpb.KeyValue, gap error) error {
	entry, err := f.log.client.keys.decode(kv.Key, kv.Value)
	if err != nil {
		return err
	}
	switch {
	case entry.Sequence <= f.Sequence:
		return nil
	case entry.Sequence > f.Sequence+1:
		return fmt.Errorf("%w: entry %d comes after %d", gap, entry.Sequence, f.Sequence)
	}
	if f.refused = f.take(entry); f.refused != nil {
		return f.refused
	}
	f.Position = Position{entry.Sequence, entry.Digest()}
	return nil
}

package coordinator

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"hdsd/api"
	"hdsd/coordinator/union"
	"hdsd/internal/reason"
	"hdsd/log"
)

// acceptances remembers which losses of sources operators have accepted on this replica. A repetition accepts the same on the
// replicas that were away, although this one holds nothing any more. Any goroutine may use it.
type acceptances struct {
	mu       sync.Mutex
	revision map[string]string // the latest one, by source; guarded by mu
}

func (a *acceptances) note(source, revision string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.revision == nil {
		a.revision = map[string]string{}
	}
	a.revision[source] = revision
}

func (a *acceptances) latest(source string) string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.revision[source]
}

// serve lets other replicas ask this one about overrides, and have it accept what a source takes away.
func (r *replicas) serve(c *control) {
	if r == nil {
		return
	}
	r.union.Preview, r.union.OwnOverrides = c.previewOwn, c.ownOverrides
	r.union.Accept = func(ctx context.Context, a union.Acceptance) (api.Held, error) {
		held, _, err := c.acceptOwn(ctx, api.SourceAcceptance{Source: a.Source, Revision: a.Revision, Reason: a.Reason, Author: a.Author},
			&log.Operator{Identity: a.Identity, Address: a.Address})
		if !failed(err) {
			r.accepted.note(a.Source, held.Revision)
		}
		return held, err
	}
}

// acceptSource accepts what a source takes away on all replicas that hold the same. One that holds nothing has nothing to
// accept. The error names replicas that may still hold it.
func (r *replicas) acceptSource(ctx context.Context, c *control, a api.SourceAcceptance, operator *log.Operator) (api.Held, api.Source, error) {
	held, now, err := c.acceptOwn(ctx, a, operator)
	revision := held.Revision
	switch cause := reason.Of(err); {
	case !failed(err):
		r.accepted.note(a.Source, revision)
	case cause == reason.NothingHeld:
		revision = cmp.Or(a.Revision, r.accepted.latest(a.Source))
	case cause == reason.HoldChanged:
		revision = a.Revision
	}
	if revision == "" {
		return held, now, err
	}
	answers, asking := r.union.AcceptElsewhere(ctx, union.Acceptance{
		Source: a.Source, Revision: revision, Reason: a.Reason, Author: a.Author, Identity: operator.Identity, Address: operator.Address,
	})
	if asking != nil {
		return held, now, cmp.Or(err, asking)
	}
	own := union.Accepted{Replica: r.config.GetNodeId(), Held: held, Err: err}
	answers = append([]union.Accepted{own}, answers...)
	for _, lost := range r.members.lostRows(own.Replica) {
		answers = append(answers, union.Accepted{Replica: lost.ID, Err: status.Error(codes.Unavailable, "it has no session")})
	}
	taken, missing := outcomeOf(a.Source, answers)
	switch {
	case missing != nil && (taken != nil || reason.Of(err) == reason.NothingHeld):
		return held, now, missing
	case taken == nil || !failed(err):
		return held, now, err
	}
	sources := c.Sources()
	if i := slices.IndexFunc(sources, func(s api.Source) bool { return s.Name == a.Source }); i >= 0 {
		now = sources[i]
	}
	return taken.Held, now, nil
}

// outcomeOf returns the first replica that has accepted what a source takes away; nil for none. The error names the replicas that
// may hold it still.
func outcomeOf(source string, answers []union.Accepted) (taken *union.Accepted, missing error) {
	var done, open []string
	code := codes.FailedPrecondition
	for i := range answers {
		switch a := &answers[i]; {
		case !failed(a.Err):
			done = append(done, a.Replica)
			taken = cmp.Or(taken, a)
		case reason.Of(a.Err) == reason.NothingHeld:
		default:
			s := status.Convert(a.Err)
			if open = append(open, fmt.Sprintf("%s (%s)", a.Replica, s.Message())); s.Code() != codes.FailedPrecondition {
				code = codes.Unavailable
			}
		}
	}
	if len(open) == 0 {
		return taken, nil
	}
	text := fmt.Sprintf("what source %s takes away is not accepted on %s", source, strings.Join(open, ", "))
	if len(done) > 0 {
		text += ", but on " + strings.Join(done, ", ")
	}
	return taken, status.Error(code, text+": repeat this when all replicas answer")
}

package coordinator

import (
	"context"
	"fmt"
	"time"

	"hdsd/api"
	"hdsd/coordinator/feed"
	"hdsd/log"
	"hdsd/source/hold"
	"hdsd/store"
)

// Sources implements api.Controller.
func (c *control) Sources() []api.Source {
	states := c.feed.Sources()
	shown := make([]api.Source, len(states))
	for i, s := range states {
		shown[i] = shownSource(s)
	}
	return shown
}

// AcceptSource implements api.Controller. All replicas accept it.
func (c *control) AcceptSource(ctx context.Context, a api.SourceAcceptance) (api.Held, api.Source, error) {
	operator := operatorOf(ctx, time.Now())
	if c.replicas != nil {
		return c.replicas.acceptSource(ctx, c, a, operator)
	}
	return c.acceptOwn(ctx, a, operator)
}

// acceptOwn accepts the held loss of a source of this replica.
func (c *control) acceptOwn(ctx context.Context, a api.SourceAcceptance, operator *log.Operator) (api.Held, api.Source, error) {
	held, state, err := c.feed.Accept(a.Source, a.Since, a.Revision)
	if err != nil {
		return api.Held{}, api.Source{}, err
	}
	before, after := shownHeld(&held), shownSource(state)
	err = c.carryOut(ctx, "what the source takes away is accepted, but the audit does not have it", nil, func(now time.Time) error {
		operator.Time = now.UTC().Round(0)
		c.auditAs(operator, store.AuditEntry{
			Action: "AcceptSource", Target: a.Source, Author: a.Author, Reason: a.Reason,
			Before: before.String(), After: api.AmountText(after.Clusters, after.Endpoints),
		})
		return nil
	})
	return *before, after, err
}

// shownSource converts the state of a source for clients.
func shownSource(s feed.SourceState) api.Source {
	return api.Source{Name: s.Name, Clusters: s.Clusters, Endpoints: s.Endpoints, Held: shownHeld(s.Held), Problem: s.Problem}
}

// shownHeld converts a held loss of a source for clients; nil stays nil.
func shownHeld(h *hold.Held) *api.Held {
	if h == nil {
		return nil
	}
	return &api.Held{
		Since: h.Since.UTC().Round(0), AcceptsAt: h.AcceptsAt.UTC().Round(0), Clusters: h.Clusters, Endpoints: h.Endpoints, Revision: h.Revision,
	}
}

// heldLines returns a line for each source with a held loss.
func heldLines(sources []feed.SourceState) (lines []string) {
	for _, s := range sources {
		lines = append(lines, fmt.Sprintf("source %s: %s (hdsd source list)", s.Name, shownHeld(s.Held)))
	}
	return lines
}

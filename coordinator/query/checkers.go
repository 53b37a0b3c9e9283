package query

import (
	"context"
	"slices"
	"strings"

	"hdsd/api"
	"hdsd/hds"
)

// Checkers implements api.Backend.
func (b *Backend) Checkers(ctx context.Context) ([]api.Checker, error) {
	var known []Checker
	var lagging map[string]bool
	if err := b.Core.Ask(ctx, func(s State) { known, lagging = s.Checkers(), s.Lagging() }); err != nil {
		return nil, err
	}
	found := make([]api.Checker, len(known))
	for i := range known {
		state := b.HDS.State(known[i].ID)
		found[i] = withStream(&known[i], &state, lagging[known[i].ID])
	}
	slices.SortFunc(found, func(x, y api.Checker) int { return strings.Compare(x.ID, y.ID) })
	return found, nil
}

// Paths implements api.Backend.
func (b *Backend) Paths(ctx context.Context) (found []api.Path, err error) {
	err = b.Core.Ask(ctx, func(s State) { found = s.Paths() })
	return found, err
}

// withStream completes a checker by what its stream says.
func withStream(known *Checker, stream *hds.State, lagging bool) api.Checker {
	k := known.Checker
	k.Specifier, k.StrangeReports = specifierState(stream, lagging), stream.StrangeReports
	if !stream.LastReport.IsZero() { // else its present stream, if it has one, has none
		k.LastReport = stream.LastReport
	}
	switch stopped := "it has stopped reporting"; {
	case stream.Silent:
		k.Silent, k.TroubledSince, k.DistrustReason = true, k.LastReport, joinReasons(stream.Reason, known.SilenceReason)
	case known.SilenceReason != "":
		k.Silent, k.TroubledSince, k.DistrustReason = true, k.LastReport, joinReasons(stopped, known.SilenceReason)
	default:
		k.DistrustReason = known.DoubtReason
	}
	if word := k.Operator; word != nil && !word.Trusted {
		k.DistrustReason = joinReasons(word.String(), k.DistrustReason)
	}
	k.Trusted = k.DistrustReason == ""
	return k
}

// joinReasons joins a reason and another, which may be empty.
func joinReasons(reason, other string) string { return strings.TrimSuffix(reason+"; "+other, "; ") }

// specifierState says whether a checker was sent its specifier and follows it.
func specifierState(s *hds.State, lagging bool) string {
	if lagging {
		return hds.NotSent
	}
	return s.Specifier
}

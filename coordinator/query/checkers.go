package query

import (
	"context"
	"slices"
	"strings"

	"hdsd/access"
	"hdsd/api"
	"hdsd/hds"
)

// Checkers implements api.Backend.
func (b *Backend) Checkers(ctx context.Context) ([]api.Checker, error) {
	now, err := b.Core.Snapshot(ctx)
	if err != nil {
		return nil, err
	}
	return b.checkersOf(ctx, now), nil
}

// hiddenReason stands for a reason that may name clusters and sources which the caller may not see.
const hiddenReason = "ask somebody who may see all clusters"

// checkersOf returns the checkers of a snapshot, each with the present state of its stream.
func (b *Backend) checkersOf(ctx context.Context, now *Snapshot) []api.Checker {
	all := access.FromContext(ctx).Clusters().All()
	found := make([]api.Checker, len(now.checkers))
	for i := range now.checkers {
		known := &now.checkers[i]
		stream := b.HDS.State(known.ID)
		found[i] = withStream(known, &stream, now.lagging[known.ID])
		if !all {
			hideReasons(&found[i])
		}
	}
	return found
}

// hideReasons hides why a checker is not believed, but not that it is not.
func hideReasons(k *api.Checker) {
	for _, reason := range []*string{&k.DistrustReason, &k.BlindReason} {
		if *reason != "" {
			*reason = hiddenReason
		}
	}
	k.CutPaths = slices.Clone(k.CutPaths) // which the snapshot has, too
	for i := range k.CutPaths {
		k.CutPaths[i].Reason = hiddenReason
	}
}

// Paths implements api.Backend.
func (b *Backend) Paths(ctx context.Context) ([]api.Path, error) {
	now, err := b.Core.Snapshot(ctx)
	if err != nil {
		return nil, err
	}
	return now.paths, nil
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

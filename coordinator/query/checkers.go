package query

import (
	"context"
	"slices"
	"strings"

	"hdsd/api"
	"hdsd/hds"
	"hdsd/peer/access"
)

// Checkers implements api.Backend.
func (b *Backend) Checkers(ctx context.Context) ([]api.Checker, error) {
	now, err := b.Core.Snapshot(ctx)
	if err != nil {
		return nil, err
	}
	return b.checkersOf(ctx, now), nil
}

// HiddenReason replaces a reason that may name clusters and sources hidden from the caller.
const HiddenReason = "ask somebody who may see all clusters"

// checkersOf returns the checkers of a snapshot, each with the present state of its stream.
func (b *Backend) checkersOf(ctx context.Context, now *Snapshot) []api.Checker {
	seesAll := access.FromContext(ctx).Clusters().All()
	found := make([]api.Checker, len(now.checkers))
	for i := range now.checkers {
		known := &now.checkers[i]
		stream := known.Stream
		if stream == nil {
			stream = new(b.HDS.State(known.ID))
		}
		found[i] = withStream(known, stream, now.lagging[known.ID])
		if !seesAll {
			hideReasons(&found[i])
		}
	}
	return found
}

// hideReasons hides the reason why a checker is not believed, but not the fact.
func hideReasons(k *api.Checker) {
	hide(&k.DistrustReason)
	hide(&k.BlindReason)
	k.CutPaths = slices.Clone(k.CutPaths) // the snapshot shares it
	for i := range k.CutPaths {
		k.CutPaths[i].Reason = HiddenReason
	}
	if k.Operator != nil {
		shown := *k.Operator
		hide(&shown.Reason)
		k.Operator = &shown
	}
}

// hide hides a reason, if there is one.
func hide(reason *string) {
	if *reason != "" {
		*reason = HiddenReason
	}
}

// Paths implements api.Backend.
func (b *Backend) Paths(ctx context.Context) ([]api.Path, error) {
	now, err := b.Core.Snapshot(ctx)
	if err != nil {
		return nil, err
	}
	if access.FromContext(ctx).Clusters().All() {
		return now.paths, nil
	}
	shown := slices.Clone(now.paths)
	for i := range shown {
		hide(&shown[i].CutReason)
	}
	return shown, nil
}

// withStream completes a checker by the state of its stream.
func withStream(known *Checker, stream *hds.State, lagging bool) api.Checker {
	k := known.Checker
	k.Specifier, k.StrangeReports = specifierState(stream, lagging), stream.StrangeReports
	if !stream.LastReport.IsZero() { // otherwise its present stream, if it has one, has none
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
func joinReasons(reason, more string) string { return strings.TrimSuffix(reason+"; "+more, "; ") }

// specifierState describes whether a checker was sent its specifier and follows it.
func specifierState(s *hds.State, lagging bool) string {
	if lagging {
		return hds.NotSent
	}
	return s.Specifier
}

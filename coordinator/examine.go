package coordinator

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"hdsd/config"
	configv1 "hdsd/gen/hdsd/config/v1"
	"hdsd/health"
	"hdsd/source"
	"hdsd/source/file"
)

// Findings is what Examine found in the sources of a configuration.
type Findings struct {
	Clusters, Endpoints int
	Problems            []source.Problem
}

// Examine reads the file sources as a start would and finds what would not be
// checked, and why, by file and line. It changes nothing.
func Examine(c *configv1.Config) Findings {
	var found Findings
	var sets []*source.Set
	for _, from := range c.GetSources() {
		path, watched := config.PathOf(from)
		if err := watchable(watched); err != nil {
			found.Problems = append(found.Problems, source.Problem{File: path, Resource: from.GetName(), Message: err.Error()})
		}
		set, err := file.New(file.Options{Name: from.GetName(), Path: path, WatchedDirectory: watched}).Load()
		if err != nil {
			if unreadable, ok := errors.AsType[*file.Error](err); ok {
				found.Problems = append(found.Problems, unreadable.Problems...)
			} else {
				found.Problems = append(found.Problems, source.Problem{File: path, Message: err.Error()})
			}
			continue
		}
		sets = append(sets, set)
	}
	r := newRules(c)
	catalog := source.Merge(nil, sets, r.defaults)
	found.Problems = append(found.Problems, catalog.Problems...)
	for _, from := range catalog.Clusters {
		k := prepare(from, r)
		found.Clusters++
		found.Endpoints += len(k.entries)
		if from.Quarantine != "" {
			continue // among the source's problems already
		}
		for _, q := range k.quarantined() {
			found.Problems = append(found.Problems, source.Problem{File: from.File, Line: from.Line, Resource: from.Name, Message: placed(q.Address, q.Reason)})
		}
		found.Problems = append(found.Problems, needs(k)...)
	}
	slices.SortStableFunc(found.Problems, func(a, b source.Problem) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line))
	})
	return found
}

func placed(address, reason string) string {
	if address == "" {
		return reason
	}
	return fmt.Sprintf("endpoint %s: %s", address, reason)
}

// needs warns of what a plain Envoy may not be able to do.
func needs(k *cluster) []source.Problem {
	var warnings []source.Problem
	if k.safe == nil {
		return nil
	}
	for _, need := range k.safe.Needs {
		if slices.Contains([]health.Ability{health.HTTP, health.TCP}, need) {
			continue
		}
		warnings = append(warnings, source.Problem{
			File: k.source.File, Line: k.source.Line, Resource: k.source.Name, Warning: true,
			Message: fmt.Sprintf("checked only by checkers that are able to: %s", need),
		})
	}
	return warnings
}

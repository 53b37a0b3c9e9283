package union

import (
	"context"

	"hdsd/api"
)

// Acceptance is an operator's acceptance of what a source takes away, for all replicas.
type Acceptance struct {
	Source   string
	Revision string // of what is accepted: each replica holds it by itself
	Reason   string
	Author   string
	Identity string // of the operator, as verified
	Address  string // of the operator
}

// Accepted is the answer of one replica.
type Accepted struct {
	Replica string
	Held    api.Held
	Err     error
}

// AcceptElsewhere has all other replicas accept what a source takes away.
func (b *Backend) AcceptElsewhere(ctx context.Context, a Acceptance) ([]Accepted, error) {
	all, err := askAll[api.Held](ctx, b, question{Kind: kindAcceptance, Acceptance: &a})
	answers := make([]Accepted, len(all))
	for i := range all {
		answers[i] = Accepted{all[i].replica, all[i].value, all[i].err}
	}
	return answers, err
}

package access

import "context"

// Permit is the authority of one call. It follows changes of the grants.
type Permit interface {
	// Admit says why the caller may not be this node, or nil. If the grants change so
	// that it may not be any more, the call ends.
	Admit(Node) error

	// Owns reports whether a grant binds this node id to the caller.
	Owns(Node) bool

	// Clusters gives the clusters that the caller may see, or change. If the grants
	// change so that these are others, the call ends.
	Clusters() Clusters

	// Over gives the clusters that the caller has a role for: none if it does not have it.
	Over(Role) Clusters
}

type inContext struct{}

// With puts a permit into a context.
func With(ctx context.Context, p Permit) context.Context {
	return context.WithValue(ctx, inContext{}, p)
}

// FromContext gives the permit of a call. Where nobody guards the servers, everything
// is permitted.
func FromContext(ctx context.Context) Permit {
	if p, ok := ctx.Value(inContext{}).(Permit); ok {
		return p
	}
	return everything{}
}

// everything permits everything. It owns nothing.
type everything struct{}

func (everything) Admit(Node) error   { return nil }
func (everything) Owns(Node) bool     { return false }
func (everything) Clusters() Clusters { return AllClusters() }
func (everything) Over(Role) Clusters { return AllClusters() }

package access

import "context"

// Permit is the authority of one call. It follows changes of the grants.
type Permit interface {
	// Admit returns the reason why the caller may not be this node, or nil. The call ends if the
	// grants change so that it no longer may.
	Admit(Node) error

	// Owns reports whether a grant binds this node id to the caller.
	Owns(Node) bool

	// Clusters returns the clusters that the caller may see, or change. The call ends if the
	// grants change this set.
	Clusters() Clusters

	// Over returns the clusters for which the caller has a role: none without the role.
	Over(Role) Clusters
}

type inContext struct{}

// With puts a permit into a context.
func With(ctx context.Context, p Permit) context.Context {
	return context.WithValue(ctx, inContext{}, p)
}

// FromContext returns the permit of a call. Without a guard, everything is permitted.
func FromContext(ctx context.Context) Permit {
	if p, ok := ctx.Value(inContext{}).(Permit); ok {
		return p
	}
	return unrestricted{}
}

// unrestricted permits everything. It owns nothing.
type unrestricted struct{}

func (unrestricted) Admit(Node) error   { return nil }
func (unrestricted) Owns(Node) bool     { return false }
func (unrestricted) Clusters() Clusters { return AllClusters() }
func (unrestricted) Over(Role) Clusters { return AllClusters() }

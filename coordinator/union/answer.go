package union

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"hdsd/api"
	"hdsd/peer/access"
)

// Answer answers a question of another replica from this one alone. An error of the question is within the answer.
func (b *Backend) Answer(ctx context.Context, text []byte) ([]byte, error) {
	if len(text) > MaxQuestion {
		return nil, status.Errorf(codes.ResourceExhausted, "the question has %d bytes, more than %d", len(text), MaxQuestion)
	}
	var q question
	if err := json.Unmarshal(text, &q); err != nil {
		return nil, status.Errorf(codes.InvalidArgument, "reading a question: %v", err)
	}
	q.bound()
	var value []byte
	var failed error
	err := api.InTurn(access.With(ctx, permit{q.Visible.clusters()}), b.turns, "", q.rows(), func(ctx context.Context) error {
		value, failed = b.value(ctx, &q)
		return nil
	})
	switch {
	case err != nil:
		return nil, status.FromContextError(err).Err()
	case failed != nil:
		return json.Marshal(answer{Failure: encodeFailure(failed)})
	}
	return slices.Concat([]byte(`{"Value":`), value, []byte("}")), nil
}

// bound limits the rows of an answer.
func (q *question) bound() {
	within := func(limit int) int { return min(max(limit, 1), api.MaxPageSize) }
	if q.Endpoints != nil {
		q.Endpoints.Limit = within(q.Endpoints.Limit)
	}
	if q.Clusters != nil {
		q.Clusters.Limit = within(q.Clusters.Limit)
	}
	q.Limit = min(max(q.Limit, 0), api.MaxOverview)
}

// rows is the number of rows that a question may cost.
func (q *question) rows() int64 {
	switch {
	case q.Endpoints != nil:
		return int64(q.Endpoints.Limit)
	case q.Clusters != nil:
		return int64(q.Clusters.Limit)
	}
	return api.DefaultPageSize
}

// permit is that of a caller at another replica.
type permit struct{ visible access.Clusters }

var errElsewhere = errors.New("the caller is at another replica")

func (permit) Admit(access.Node) error          { return errElsewhere }
func (permit) Owns(access.Node) bool            { return false }
func (p permit) Clusters() access.Clusters      { return p.visible }
func (permit) Over(access.Role) access.Clusters { return access.Clusters{} }

// value returns the encoded answer to a question.
func (b *Backend) value(ctx context.Context, q *question) ([]byte, error) {
	if leader, ok := b.peers.Leader(); ok && q.Leader {
		return nil, status.Errorf(codes.Unavailable, "%s leads, not this replica", leader)
	}
	switch {
	case q.Kind == kindEndpoints && q.Endpoints != nil:
		found, more, err := b.Backend.Endpoints(ctx, *q.Endpoints)
		return encodeRows(found, more, err)
	case q.Kind == kindClusters && q.Clusters != nil:
		found, more, err := b.Backend.Clusters(ctx, *q.Clusters)
		encoded := make([]cluster, len(found))
		for i := range found {
			var failed error
			encoded[i], failed = encodeCluster(found[i])
			err = cmp.Or(err, failed)
		}
		return encodeRows(encoded, more, err)
	case q.Kind == kindCheckers:
		return encode(b.Backend.Checkers(ctx))
	case q.Kind == kindPaths:
		return encode(b.Backend.Paths(ctx))
	case q.Kind == kindClients:
		return encode(b.Backend.Clients(ctx, q.Cluster))
	case q.Kind == kindStatus:
		s, err := b.Backend.Status(ctx)
		if excess := len(s.Attention) - api.MaxAttention; excess > 0 {
			s.Attention, s.Further = s.Attention[:api.MaxAttention], s.Further+excess
		}
		return encode(s, err)
	case q.Kind == kindOverview:
		return encode(b.Backend.Overview(ctx, q.Limit))
	case q.Kind == kindAcceptance && q.Acceptance != nil && b.Accept != nil:
		return encode(b.Accept(ctx, *q.Acceptance))
	case q.Kind == kindPreview && q.Override != nil && b.Preview != nil:
		return encode(b.Preview(ctx, *q.Override))
	case q.Kind == kindOverrides && b.OwnOverrides != nil:
		return encode(b.OwnOverrides(ctx))
	case q.Kind == kindReplica:
		return encode(b.own(ctx))
	}
	return nil, status.Errorf(codes.Unimplemented, "this release does not know questions of kind %q", q.Kind)
}

// own returns the row of this replica.
func (b *Backend) own(ctx context.Context) (api.Replica, error) {
	all, _, err := b.Backend.Replicas(ctx)
	for i := range all {
		if all[i].Self {
			return all[i], nil
		}
	}
	return api.Replica{}, cmp.Or(err, errors.New("this replica is not among the replicas"))
}

// encode encodes an answer that does not come in pages.
func encode[Value any](value Value, err error) ([]byte, error) {
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(value)
	if err != nil {
		return nil, fmt.Errorf("encoding an answer: %w", err)
	}
	if len(text) > maxValue {
		return nil, status.Errorf(codes.ResourceExhausted, "the answer has %d bytes, and another replica takes %d", len(text), maxValue)
	}
	return text, nil
}

// maxValue leaves room for the rest of an answer.
var maxValue = MaxAnswer - 1<<10

// encodeRows encodes a page, or the part of it that fits.
func encodeRows[Row any](found []Row, more bool, err error) ([]byte, error) {
	if err != nil {
		return nil, err
	}
	for {
		text, err := json.Marshal(rows[Row]{found, more})
		switch {
		case err != nil:
			return nil, fmt.Errorf("encoding an answer: %w", err)
		case len(text) <= maxValue:
			return text, nil
		case len(found) < 2:
			return nil, status.Errorf(codes.ResourceExhausted, "a row has %d bytes, and another replica takes %d", len(text), maxValue)
		}
		found, more = found[:len(found)/2], true
	}
}

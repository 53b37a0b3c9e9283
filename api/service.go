package api

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sort"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/timestamppb"

	hdsdv1 "hdsd/gen/hdsd/v1"
	"hdsd/health"
	"hdsd/internal/gate"
	"hdsd/internal/reason"
	"hdsd/internal/rest"
	"hdsd/peer/limit"
)

// Page sizes, in items.
const (
	DefaultPageSize = 1000
	MaxPageSize     = 10000
)

// Service is the hdsd.v1 service on top of a Backend.
type Service struct {
	hdsdv1.UnimplementedQueryServer
	backend Backend
	limits  Limits
	turns   *limit.Queue // of watchers
	calls   *gate.Gate   // watches over gRPC
}

// NewService returns a service on top of backend.
func NewService(backend Backend) *Service {
	return &Service{backend: backend, turns: newTurns(), calls: gate.New()}
}

// Close refuses new watches over gRPC, and waits for the others. They end when the
// backend stops.
func (s *Service) Close() { s.calls.Close() }

// Register registers the service with a gRPC server.
func (s *Service) Register(server grpc.ServiceRegistrar) {
	hdsdv1.RegisterQueryServer(server, queries{s})
}

// ListEndpoints returns the health of endpoints, now or at a past time.
func (s *Service) ListEndpoints(ctx context.Context, r *hdsdv1.ListEndpointsRequest) (*hdsdv1.ListEndpointsResponse, error) {
	return messageOf(endpointsMessage)(s.endpoints(ctx, r))
}

// endpoints returns the rows of ListEndpoints.
func (s *Service) endpoints(ctx context.Context, r *hdsdv1.ListEndpointsRequest) (*endpointPage, error) {
	limit, err := pageSize(r.GetPageSize())
	if err != nil {
		return nil, err
	}
	query := EndpointQuery{Cluster: r.GetCluster(), Address: r.GetAddress(), Limit: limit}
	if r.Health != nil {
		wanted := health.Status(r.GetHealth())
		if r.GetHealth() < 0 || !wanted.Valid() {
			return nil, status.Errorf(codes.InvalidArgument, "health: %d is not a health status", r.GetHealth())
		}
		query.Health = &wanted
	}
	if query.Filter, err = filterOf(r); err != nil {
		return nil, err
	}
	if query.AsOf, err = moment("as_of", r.GetAsOf()); err != nil {
		return nil, err
	}
	if now := time.Now(); query.AsOf.After(now.Add(clockSkew)) {
		return nil, status.Errorf(codes.InvalidArgument, "as_of: %s is in the future, it is %s here: leave it out for the current health", written(query.AsOf), written(now))
	}
	question := fmt.Sprintf("endpoints %q %q %t %d", query.Cluster, query.Address, r.Health != nil, r.GetHealth())
	if r.GetAsOf() != nil {
		question += query.AsOf.String()
	}
	question += questionOf(query.Filter)
	if r.GetPageToken() != "" {
		query.After = new(health.Endpoint)
		if err := decodeToken(question, r.GetPageToken(), query.After); err != nil {
			return nil, grpcError(err)
		}
	}
	endpoints, more, err := s.backend.Endpoints(ctx, query)
	if err != nil {
		return nil, grpcError(err)
	}
	answer := &endpointPage{rows: endpoints}
	if !query.AsOf.IsZero() {
		began, err := s.backend.HistoryBegan()
		if err != nil {
			return nil, grpcError(err)
		}
		if query.AsOf.Before(began) {
			answer.begins = began
		}
	}
	if more {
		answer.next, err = encodeToken(question, endpoints[len(endpoints)-1].Endpoint)
	}
	return answer, grpcError(err)
}

// ListTransitions returns the recorded changes of health.
func (s *Service) ListTransitions(ctx context.Context, r *hdsdv1.ListTransitionsRequest) (*hdsdv1.ListTransitionsResponse, error) {
	return messageOf(transitionsMessage)(s.transitions(ctx, r))
}

// transitions returns the rows of ListTransitions.
func (s *Service) transitions(ctx context.Context, r *hdsdv1.ListTransitionsRequest) (*transitionPage, error) {
	limit, err := pageSize(r.GetPageSize())
	if err != nil {
		return nil, err
	}
	query := TransitionQuery{
		Cluster: r.GetCluster(), Address: r.GetAddress(),
		NewestFirst: r.GetNewestFirst(), Limit: limit, Token: r.GetPageToken(),
	}
	if query.Start, query.End, err = period(r); err != nil {
		return nil, err
	}
	if query.Filter, err = filterOf(r); err != nil {
		return nil, err
	}
	query.Checker = r.GetChecker()
	transitions, next, err := s.backend.Transitions(ctx, query)
	if err != nil {
		return nil, grpcError(err)
	}
	gaps, err := s.backend.Gaps(ctx, query, next)
	if err != nil {
		return nil, grpcError(err)
	}
	return &transitionPage{rows: transitions, next: next, gaps: gaps, failing: s.backend.HistoryFailing()}, nil
}

// ListClusters returns the clusters of all sources.
func (s *Service) ListClusters(ctx context.Context, r *hdsdv1.ListClustersRequest) (*hdsdv1.ListClustersResponse, error) {
	filter, err := filterOf(r)
	if err != nil {
		return nil, err
	}
	question := "clusters" + questionOf(filter)
	if r.GetCluster() != "" {
		question += " of " + r.GetCluster()
	}
	limit, after, err := page(r.GetPageSize(), r.GetPageToken(), question)
	if err != nil {
		return nil, err
	}
	clusters, more, err := s.backend.Clusters(ctx, ClusterQuery{Cluster: r.GetCluster(), Filter: filter, After: after, Limit: limit})
	if err != nil {
		return nil, grpcError(err)
	}
	answer := &hdsdv1.ListClustersResponse{Clusters: convertList(clusters, clusterMessage)}
	if r.GetCluster() != "" && len(clusters) == 0 && after == "" && filter.Any() {
		answer.Removed, err = removal(ctx, s.backend, r.GetCluster())
		return answer, grpcError(err)
	}
	if more {
		answer.NextPageToken, err = encodeToken(question, clusters[len(clusters)-1].Name)
	}
	return answer, grpcError(err)
}

// removal returns when the source removed a cluster. The time is absent if the history does not
// have it.
func removal(ctx context.Context, backend Backend, cluster string) (*hdsdv1.Removal, error) {
	found, _, err := backend.RecordedEvents(ctx, RecordedEventQuery{
		Cluster: cluster, Kind: "CLUSTER", NewestFirst: true, Limit: 1,
	})
	m := &hdsdv1.Removal{}
	if len(found) > 0 && found[0].Kind == hdsdv1.Event_CLUSTER_REMOVED { // else hdsd did not see its second removal
		m.Time, m.Text = timeMessage(found[0].Time), found[0].Text
	}
	return m, err
}

// ListCheckers returns the checkers that are connected or have kept seats, and lost ones on
// request.
func (s *Service) ListCheckers(ctx context.Context, r *hdsdv1.ListCheckersRequest) (*hdsdv1.ListCheckersResponse, error) {
	question := "checkers"
	if r.GetLost() {
		question += " and lost ones"
	}
	limit, after, err := page(r.GetPageSize(), r.GetPageToken(), question)
	if err != nil {
		return nil, err
	}
	checkers, err := s.backend.Checkers(ctx)
	if err != nil {
		return nil, grpcError(err)
	}
	if !r.GetLost() {
		checkers = slices.DeleteFunc(checkers, func(k Checker) bool { return k.Lost != nil && k.Lost.Gone })
	}
	shown, next, err := pageOf(checkers, limit, after, question, func(k *Checker) string { return k.ID })
	if err != nil {
		return nil, grpcError(err)
	}
	digest := uint64(0) // of the whole plan
	for i := range checkers {
		digest += checkers[i].PlanDigest
	}
	return &hdsdv1.ListCheckersResponse{Checkers: convertList(shown, checkerMessage), PlanDigest: DigestText(digest), NextPageToken: next}, nil
}

// messageOf returns the message of a page, if any.
func messageOf[Page, M any](message func(*Page) *M) func(*Page, error) (*M, error) {
	return func(p *Page, err error) (*M, error) {
		if err != nil {
			return nil, err
		}
		return message(p), nil
	}
}

// moment reads a time, zero if absent.
func moment(field string, t *timestamppb.Timestamp) (time.Time, error) {
	if t == nil {
		return time.Time{}, nil
	}
	if err := t.CheckValid(); err != nil {
		return time.Time{}, status.Errorf(codes.InvalidArgument, "%s: %v", field, err)
	}
	if parsed := t.AsTime(); !parsed.IsZero() {
		return parsed, nil
	}
	return time.Unix(0, 0).UTC(), nil // not absent, but the earliest time
}

// clockSkew bounds how far a caller's clock may be ahead of hdsd's.
const clockSkew = time.Minute

// period reads the two times of a query, and checks their order.
func period(r interface {
	GetStartTime() *timestamppb.Timestamp
	GetEndTime() *timestamppb.Timestamp
}) (start, end time.Time, err error) {
	if start, err = moment("start_time", r.GetStartTime()); err != nil {
		return start, end, err
	}
	if end, err = moment("end_time", r.GetEndTime()); err == nil && !end.IsZero() && start.After(end) {
		err = status.Errorf(codes.InvalidArgument, "start_time: %s is after end_time, %s: exchange the two", written(start), written(end))
	}
	return start, end, err
}

func written(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) }

// page reads the paging fields of a list ordered by name.
func page(size int32, token, question string) (limit int, after string, err error) {
	if limit, err = pageSize(size); err != nil || token == "" {
		return limit, "", err
	}
	err = decodeToken(question, token, &after)
	return limit, after, grpcError(err)
}

// pageOf returns the rows after a key, and the token of the next page; empty on the last one.
// The rows are sorted by their keys, which are not empty.
func pageOf[Row any](rows []Row, limit int, after, question string, key func(*Row) string) (shown []Row, next string, err error) {
	first := sort.Search(len(rows), func(i int) bool { return key(&rows[i]) > after })
	shown = rows[first:min(first+limit, len(rows))]
	if first+limit < len(rows) {
		next, err = encodeToken(question, key(&shown[len(shown)-1]))
	}
	return shown, next, err
}

func pageSize(requested int32) (int, error) {
	switch {
	case requested < 0 || requested > MaxPageSize:
		return 0, status.Errorf(codes.InvalidArgument, "page_size: %d is not between 1 and %d (0 or absent: %d)", requested, MaxPageSize, DefaultPageSize)
	case requested == 0:
		return DefaultPageSize, nil
	}
	return int(requested), nil
}

// grpcError adds the gRPC code to a Backend's error.
func grpcError(err error) error {
	full := (*limit.Error)(nil)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, ErrUnknownCluster):
		return reason.New(codes.NotFound, reason.UnknownCluster, rest.Brief(err.Error()))
	case errors.Is(err, ErrBadToken):
		return reason.New(codes.InvalidArgument, reason.TokenInvalid, err.Error())
	case errors.Is(err, ErrTooOld):
		return reason.New(codes.OutOfRange, reason.HistoryForgotten, err.Error())
	case errors.As(err, &full):
		return withRetry(full.GRPCStatus())
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return status.FromContextError(err).Err()
	}
	if _, ok := status.FromError(err); ok {
		return err
	}
	return status.Error(codes.Internal, err.Error())
}

package api

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	"github.com/grpc-ecosystem/grpc-gateway/v2/runtime"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	hdsdv1 "hdsd/gen/hdsd/v1"
	"hdsd/internal/rest"
)

// Handler serves the service as REST below /v1/.
func (s *Service) Handler() (http.Handler, error) {
	mux := newGateway()
	if err := hdsdv1.RegisterQueryHandlerServer(context.Background(), mux, overREST{queries{s}}); err != nil {
		return nil, fmt.Errorf("serving REST: %w", err)
	}
	return checkParameters(withDocument(s.withWatch(delivered(mux)))), nil
}

func newGateway() *runtime.ServeMux {
	return runtime.NewServeMux(
		runtime.WithDisablePathLengthFallback(), // queries take no POST
		runtime.WithMarshalerOption(runtime.MIMEWildcard, &answers{}),
		runtime.WithForwardResponseRewriter(textFirst),
		runtime.WithErrorHandler(writeError),
		runtime.WithRoutingErrorHandler(writeRoutingError),
	)
}

// overREST is the Query service over REST. It writes the JSON of long lists directly from their
// rows: messages would be a third of the garbage.
type overREST struct{ queries }

// ListEndpoints implements hdsdv1.QueryServer.
func (s overREST) ListEndpoints(ctx context.Context, r *hdsdv1.ListEndpointsRequest) (*hdsdv1.ListEndpointsResponse, error) {
	page, err := answer(ctx, s.Service, r.GetPageSize(), r, s.endpoints, func(p *endpointPage) int { return len(p.rows) })
	if err != nil {
		return nil, err
	}
	return nil, writeText(ctx, page, (*object).endpoints, endpointsMessage)
}

// ListTransitions implements hdsdv1.QueryServer.
func (s overREST) ListTransitions(ctx context.Context, r *hdsdv1.ListTransitionsRequest) (*hdsdv1.ListTransitionsResponse, error) {
	page, err := answer(ctx, s.Service, r.GetPageSize(), r, s.transitions, func(p *transitionPage) int { return len(p.rows) })
	if err != nil {
		return nil, err
	}
	return nil, writeText(ctx, page, (*object).transitions, transitionsMessage)
}

// ListAvailability implements hdsdv1.QueryServer.
func (s overREST) ListAvailability(ctx context.Context, r *hdsdv1.ListAvailabilityRequest) (*hdsdv1.ListAvailabilityResponse, error) {
	list, err := s.queries.ListAvailability(ctx, r)
	if err != nil {
		return nil, err
	}
	return nil, writeText(ctx, list, (*object).availabilities, sameMessage)
}

func sameMessage[M proto.Message](m M) M { return m }

// writeText writes the JSON of a page, for textFirst.
func writeText[Page any, M proto.Message](ctx context.Context, p *Page, fields func(*object, *Page), message func(*Page) M) (err error) {
	deliveryOf(ctx).text, err = rowJSON(p, fields, message)
	return err
}

// textFirst uses the text of an answer, if there is one, in place of its message.
func textFirst(ctx context.Context, m proto.Message) (any, error) {
	if d := deliveryOf(ctx); d != nil && d.text != nil {
		return d.text, nil
	}
	return m, nil
}

// answers marshals responses as compact JSON.
type answers struct{ runtime.JSONPb }

func (answers) Marshal(answer any) ([]byte, error) {
	switch a := answer.(type) {
	case []byte:
		return a, nil
	case proto.Message:
		return compactJSON(a)
	}
	return nil, fmt.Errorf("%T is no answer", answer)
}

func writeError(_ context.Context, _ *runtime.ServeMux, _ runtime.Marshaler, w http.ResponseWriter, _ *http.Request, err error) {
	rest.WriteError(w, err)
}

func writeRoutingError(_ context.Context, _ *runtime.ServeMux, _ runtime.Marshaler, w http.ResponseWriter, r *http.Request, code int) {
	grpcCode := codes.NotFound
	switch code {
	case http.StatusMethodNotAllowed:
		grpcCode = codes.Unimplemented
	case http.StatusBadRequest:
		grpcCode = codes.InvalidArgument
	}
	rest.WriteError(w, rest.Errorf(code, grpcCode, "%s %s: %s", r.Method, r.URL.Path, strings.ToLower(http.StatusText(code))))
}

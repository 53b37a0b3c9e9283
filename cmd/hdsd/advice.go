package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	hdsdv1 "hdsd/gen/hdsd/v1"
	"hdsd/internal/reason"
	"hdsd/internal/suggest"
)

// lookTimeout bounds look-ups that only improve advice.
const lookTimeout = 3 * time.Second

// advise turns an error of a coordinator, or its silence, into advice.
func (c *client) advise(ctx context.Context, query hdsdv1.QueryClient, err error) error {
	answer, ok := status.FromError(err)
	if err == nil || !ok || ctx.Err() != nil {
		return err
	}
	if strings.HasPrefix(answer.Message(), "unexpected HTTP status code") { // a text of grpc-go, of an answer without gRPC
		return fmt.Errorf("%s %s", c.server, speaksHTTP)
	}
	switch answer.Code() {
	case codes.Unavailable:
		if reason.Of(err) == reason.DiskFailing {
			return errors.New(answer.Message())
		}
		config, bad := c.tls.config()
		if bad != nil {
			return bad
		}
		cause := diagnose(ctx, c.server, config, answer.Message())
		if errors.As(cause, &unexplained{}) && (reason.Of(err) == reason.Stopping || answers(ctx, query)) {
			return fmt.Errorf("%s is stopping, or was restarted while it answered (%s): ask again in a moment", c.server, answer.Message())
		}
		return cause
	case codes.NotFound:
		if reason.Of(err) != reason.UnknownCluster {
			return errors.New(answer.Message())
		}
		if _, removed := noEndpoints(ctx, query, c.cluster); removed != "" {
			return errors.New(removed)
		}
		return fmt.Errorf("%s%s ('hdsd clusters' lists all)", answer.Message(), suggestClusters(ctx, query, c.cluster))
	case codes.DeadlineExceeded:
		return fmt.Errorf("%s did not answer within %s: it is busy, or something between drops what is sent", c.server, askTimeout)
	case codes.Unimplemented:
		return fmt.Errorf("%s is no hdsd, or one of another version: %s", c.server, answer.Message())
	}
	return errors.New(answer.Message())
}

// answers reports whether an hdsd answers after all.
func answers(ctx context.Context, query hdsdv1.QueryClient) bool {
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	_, err := query.ListClusters(ctx, &hdsdv1.ListClustersRequest{PageSize: 1}, grpc.WaitForReady(true))
	return err == nil
}

// suggestClusters suggests clusters for an unknown name.
func suggestClusters(ctx context.Context, query hdsdv1.QueryClient, name string) string {
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	answer, err := query.ListClusters(ctx, &hdsdv1.ListClustersRequest{PageSize: pageSize})
	if err != nil || name == "" {
		return ""
	}
	var names []string
	for _, c := range answer.GetClusters() {
		names = append(names, c.GetName())
	}
	return suggest.DidYouMean(name, names)
}

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

	"hdsd/coordinator"
	hdsdv1 "hdsd/gen/hdsd/v1"
)

// lookTimeout bounds what is only looked up to give better advice.
const lookTimeout = 3 * time.Second

// advise turns what a coordinator answered, or that none did, into what to do
// next.
func (c *client) advise(ctx context.Context, query hdsdv1.QueryClient, err error) error {
	answer, ok := status.FromError(err)
	if err == nil || !ok || ctx.Err() != nil {
		return err
	}
	switch answer.Code() {
	case codes.Unavailable:
		config, bad := c.tls.config()
		if bad != nil {
			return bad
		}
		err := diagnose(ctx, c.server, config, answer.Message())
		if errors.As(err, &unexplained{}) && (answer.Message() == status.Convert(coordinator.ErrStopping).Message() || answers(ctx, query)) {
			return fmt.Errorf("%s is stopping, or was restarted while it answered (%s): ask again in a moment", c.server, answer.Message())
		}
		return err
	case codes.NotFound:
		if !strings.HasPrefix(answer.Message(), "unknown cluster") {
			return errors.New(answer.Message())
		}
		return fmt.Errorf("%s%s ('hdsd clusters' lists all)", answer.Message(), meant(ctx, query, c.cluster))
	case codes.DeadlineExceeded:
		return fmt.Errorf("%s did not answer within %s: it is busy, or something between drops what is sent", c.server, askTimeout)
	case codes.Unimplemented:
		return fmt.Errorf("%s is no hdsd, or one of another version: %s", c.server, answer.Message())
	}
	return errors.New(answer.Message())
}

// answers tells whether there is an hdsd after all.
func answers(ctx context.Context, query hdsdv1.QueryClient) bool {
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	_, err := query.ListClusters(ctx, &hdsdv1.ListClustersRequest{PageSize: 1}, grpc.WaitForReady(true))
	return err == nil
}

// meant says which clusters an unknown name may have been meant for.
func meant(ctx context.Context, query hdsdv1.QueryClient, name string) string {
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
	near := nearest(name, names)
	if len(near) == 0 {
		return ""
	}
	return ": did you mean " + strings.Join(near, " or ") + "?"
}

// nearest gives the names that are most like one, at most three.
func nearest(name string, names []string) []string {
	var near []string
	least := max(2, len(name)/3)
	for _, other := range names {
		far := distance(strings.ToLower(name), strings.ToLower(other))
		if strings.Contains(other, name) || strings.Contains(name, other) {
			far = min(far, 2)
		}
		if far < least {
			near, least = nil, far
		}
		if far == least {
			near = append(near, other)
		}
	}
	return near[:min(3, len(near))]
}

// distance is how many characters have to be put in, taken out, changed or
// swapped with the next to turn one word into another.
func distance(a, b string) int {
	rows := make([][]int, len(a)+1)
	for i := range rows {
		rows[i] = make([]int, len(b)+1)
		rows[i][0] = i
	}
	for j := range rows[0] {
		rows[0][j] = j
	}
	for i := 1; i <= len(a); i++ {
		for j := 1; j <= len(b); j++ {
			change := rows[i-1][j-1]
			if a[i-1] != b[j-1] {
				change++
			}
			rows[i][j] = min(change, rows[i-1][j]+1, rows[i][j-1]+1)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				rows[i][j] = min(rows[i][j], rows[i-2][j-2]+1)
			}
		}
	}
	return rows[len(a)][len(b)]
}

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	hdsdv1 "hdsd/gen/hdsd/v1"
	"hdsd/internal/suggest"
)

// shownAddresses is how many addresses to suggest for an unknown one.
const shownAddresses = 5

// warnAbsent says why nothing was shown: the endpoint does not exist, or the cluster
// has none.
func (c *client) warnAbsent(ctx context.Context, query hdsdv1.QueryClient, to io.Writer) {
	if c.shown.Load() > 0 || c.cluster == "" || c.told {
		return
	}
	reason, text := noEndpoints(ctx, query, c.cluster)
	switch {
	case text != "":
	case c.address != "":
		text = absence(ctx, query, c.cluster, c.address)
	case reason != "":
		text = fmt.Sprintf("%s has no endpoints: %s", c.cluster, reason)
	}
	if text != "" {
		c.told = true
		say(to, "hdsd: %s\n", text)
	}
}

// absent returns an error if the requested endpoint, or its cluster, does not exist, and nil if
// it does or rows were shown.
func (c *client) absent(ctx context.Context, query hdsdv1.QueryClient) error {
	if c.shown.Load() > 0 || c.cluster == "" {
		return nil
	}
	if _, removed := noEndpoints(ctx, query, c.cluster); removed != "" {
		return errors.New(removed)
	}
	if c.address == "" {
		return nil
	}
	if text := absence(ctx, query, c.cluster, c.address); text != "" {
		return errors.New(text)
	}
	return nil
}

// neverKnown is absent, unless the history has the endpoint: then a query of the past
// is valid.
func (c *client) neverKnown(ctx context.Context, query hdsdv1.QueryClient) error {
	if c.address == "" {
		return nil
	}
	absent := c.absent(ctx, query)
	if absent == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	past, err := query.ListTransitions(ctx, &hdsdv1.ListTransitionsRequest{Cluster: c.cluster, Address: c.address, PageSize: 1})
	if err != nil || len(past.GetTransitions()) > 0 {
		return nil
	}
	return absent
}

// absence says that a cluster has no endpoint of an address, and which it has. It is
// empty if the endpoint exists or the coordinator does not answer.
func absence(ctx context.Context, query hdsdv1.QueryClient, cluster, address string) string {
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	all, err := query.ListEndpoints(ctx, &hdsdv1.ListEndpointsRequest{Cluster: cluster, PageSize: pageSize})
	if err != nil {
		return ""
	}
	var has []string
	for _, e := range all.GetEndpoints() {
		if e.GetAddress() == address {
			return ""
		}
		if !slices.Contains(has, e.GetAddress()) {
			has = append(has, e.GetAddress())
		}
	}
	if len(has) == 0 {
		reason, _ := noEndpoints(ctx, query, cluster)
		return strings.TrimSuffix(fmt.Sprintf("no such endpoint in %s; it has none at all: %s", cluster, reason), ": ")
	}
	more := ""
	if all.GetNextPageToken() != "" {
		more = " and more"
	} else if len(has) > shownAddresses {
		more = fmt.Sprintf(" and %d more", len(has)-shownAddresses)
	}
	slices.SortStableFunc(has, func(a, b string) int { return cmp.Compare(suggest.Distance(a, address), suggest.Distance(b, address)) })
	return fmt.Sprintf("no such endpoint in %s; it has %s%s", cluster, strings.Join(has[:min(shownAddresses, len(has))], ", "), more)
}

// noEndpoints says why a cluster has no endpoints: the reason of its source, or the text of its
// removal. Both are empty if it has endpoints, or the coordinator does not answer.
func noEndpoints(ctx context.Context, query hdsdv1.QueryClient, cluster string) (reason, removed string) {
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	answer, err := query.ListClusters(ctx, &hdsdv1.ListClustersRequest{Cluster: cluster})
	switch {
	case err != nil:
	case answer.GetRemoved() != nil:
		removed = removalText(cluster, answer.GetRemoved())
	case len(answer.GetClusters()) > 0:
		reason = answer.GetClusters()[0].GetNoEndpointsReason()
	}
	return reason, removed
}

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

// shownAddresses bounds the suggested addresses for an unknown one.
const shownAddresses = 5

// warnAbsent explains an empty answer: the endpoint does not exist, or the cluster has none.
func (c *client) warnAbsent(ctx context.Context, query hdsdv1.QueryClient, w io.Writer) {
	if c.shown.Load() > 0 || c.cluster == "" || c.explained {
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
		c.explained = true
		say(w, "hdsd: %s\n", text)
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
	transitions, err := query.ListTransitions(ctx, &hdsdv1.ListTransitionsRequest{Cluster: c.cluster, Address: c.address, PageSize: 1})
	if err != nil || len(transitions.GetTransitions()) > 0 {
		return nil
	}
	return absent
}

// absence explains that a cluster has no endpoint of an address, and lists its addresses. It is
// empty if the endpoint exists or the coordinator does not answer.
func absence(ctx context.Context, query hdsdv1.QueryClient, cluster, address string) string {
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	endpoints, err := query.ListEndpoints(ctx, &hdsdv1.ListEndpointsRequest{Cluster: cluster, PageSize: pageSize})
	if err != nil {
		return ""
	}
	var has []string
	for _, e := range endpoints.GetEndpoints() {
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
	suffix := ""
	if endpoints.GetNextPageToken() != "" {
		suffix = " and more"
	} else if len(has) > shownAddresses {
		suffix = fmt.Sprintf(" and %d more", len(has)-shownAddresses)
	}
	slices.SortStableFunc(has, func(a, b string) int { return cmp.Compare(suggest.Distance(a, address), suggest.Distance(b, address)) })
	return fmt.Sprintf("no such endpoint in %s; it has %s%s", cluster, strings.Join(has[:min(shownAddresses, len(has))], ", "), suffix)
}

// noEndpoints returns the reason why a cluster has no endpoints: that of its source, or the text
// of its removal. Both are empty if it has endpoints, or the coordinator does not answer.
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

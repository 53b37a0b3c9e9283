package api

import (
	"context"
	"fmt"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	hdsdv1 "hdsd/gen/hdsd/v1"
)

// SourcesPath is the REST path for sources.
const SourcesPath = "/v1/sources"

// Source is a source of clusters, and how much of it is in use.
type Source struct {
	Name                string
	Clusters, Endpoints int
	Held                *Held  // nil if nothing is held
	Problem             string // what hdsd refuses, and what it uses instead; empty without a problem
}

// Held is the rest of a source after its held loss is accepted.
type Held struct {
	Since, AcceptsAt    time.Time
	Clusters, Endpoints int
	Revision            string // identifies the loss
}

// String describes the loss on one line.
func (h *Held) String() string {
	return fmt.Sprintf("held since %s until %s: accepted, it leaves %s",
		h.Since.UTC().Format(time.RFC3339), h.AcceptsAt.UTC().Format(time.RFC3339), AmountText(h.Clusters, h.Endpoints))
}

// AmountText describes the size of a source.
func AmountText(clusters, endpoints int) string {
	text := fmt.Sprintf("%d clusters", clusters)
	if clusters == 1 {
		text = "1 cluster"
	}
	if endpoints == 1 {
		return text + " and 1 endpoint"
	}
	return fmt.Sprintf("%s and %d endpoints", text, endpoints)
}

// SourceAcceptance is an operator's acceptance of the held loss of a source.
type SourceAcceptance struct {
	Source         string
	Reason, Author string

	// Since and Revision identify the loss that was shown; zero and empty accept any.
	Since    time.Time
	Revision string
}

// ListSources returns the sources of clusters.
func (c *Control) ListSources(context.Context, *hdsdv1.ListSourcesRequest) (*hdsdv1.ListSourcesResponse, error) {
	return &hdsdv1.ListSourcesResponse{Sources: convertList(c.controller.Sources(), sourceMessage)}, nil
}

// AcceptSource accepts the held loss of a source.
func (c *Control) AcceptSource(ctx context.Context, r *hdsdv1.AcceptSourceRequest) (*hdsdv1.AcceptSourceResponse, error) {
	name, err := oneLine("name", r.GetName(), maxName)
	if err == nil && name == "" {
		err = status.Error(codes.InvalidArgument, "name: is required: of the source, as 'hdsd source list' shows it")
	}
	if err != nil {
		return nil, err
	}
	reason, err := oneLine("reason", r.GetReason(), maxReason)
	if err != nil {
		return nil, err
	}
	author, err := authorOf(ctx, r.GetAuthor())
	if err != nil {
		return nil, err
	}
	acceptance := SourceAcceptance{Source: name, Reason: reason, Author: author, Revision: r.GetHeldRevision()}
	if r.GetHeldSince() != nil {
		if err := r.GetHeldSince().CheckValid(); err != nil {
			return nil, status.Errorf(codes.InvalidArgument, "held_since: %s", err)
		}
		acceptance.Since = r.GetHeldSince().AsTime()
	}
	accepted, now, err := c.controller.AcceptSource(ctx, acceptance)
	if err != nil {
		return nil, grpcError(err)
	}
	return &hdsdv1.AcceptSourceResponse{Accepted: heldMessage(&accepted), Source: sourceMessage(now)}, nil
}

func sourceMessage(s Source) *hdsdv1.Source {
	return &hdsdv1.Source{Name: s.Name, Clusters: uint32(s.Clusters), Endpoints: uint32(s.Endpoints), Held: heldMessage(s.Held), Problem: s.Problem}
}

func heldMessage(h *Held) *hdsdv1.Source_Held {
	if h == nil {
		return nil
	}
	return &hdsdv1.Source_Held{
		Since: timeMessage(h.Since), AcceptsAt: timeMessage(h.AcceptsAt),
		Clusters: uint32(h.Clusters), Endpoints: uint32(h.Endpoints), Revision: h.Revision,
	}
}

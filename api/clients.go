package api

import (
	"cmp"
	"context"
	"slices"

	hdsdv1 "hdsd/gen/hdsd/v1"
)

// clientPosition is the sort key of clients.
type clientPosition struct{ ID, Kind, TypeURL, Replica string }

func (p clientPosition) compare(q clientPosition) int {
	return cmp.Or(cmp.Compare(p.ID, q.ID), cmp.Compare(p.Kind, q.Kind), cmp.Compare(p.TypeURL, q.TypeURL), cmp.Compare(p.Replica, q.Replica))
}

func (c *Client) position() clientPosition { return clientPosition{c.ID, c.Kind, c.TypeURL, c.Replica} }

// ListClients returns the connected clients, and how much of its request each one has.
func (s *Service) ListClients(ctx context.Context, r *hdsdv1.ListClientsRequest) (*hdsdv1.ListClientsResponse, error) {
	limit, err := pageSize(r.GetPageSize())
	if err != nil {
		return nil, err
	}
	question := "clients"
	if r.GetCluster() != "" {
		question += " of " + r.GetCluster()
	}
	var after *clientPosition
	if r.GetPageToken() != "" {
		after = new(clientPosition)
		if err := decodeToken(question, r.GetPageToken(), after); err != nil {
			return nil, grpcError(err)
		}
	}
	clients, err := s.backend.Clients(ctx, r.GetCluster())
	if err != nil {
		return nil, grpcError(err)
	}
	clients = slices.DeleteFunc(clients, func(c Client) bool { return after != nil && c.position().compare(*after) <= 0 })
	slices.SortFunc(clients, func(a, b Client) int { return a.position().compare(b.position()) })
	shown := clients[:min(limit, len(clients))]
	answer := &hdsdv1.ListClientsResponse{Clients: convertList(shown, clientMessage)}
	if len(shown) < len(clients) {
		answer.NextPageToken, err = encodeToken(question, shown[len(shown)-1].position())
	}
	return answer, grpcError(err)
}

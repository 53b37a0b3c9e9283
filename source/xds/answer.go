package xds

import (
	"encoding/json"
	"errors"
	"fmt"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/types/known/anypb"

	"hdsd/envoy/rules"
)

// parseJSON reads a response, each resource on its own, so that a bad one does not
// spoil the others.
func parseJSON(body []byte, typeURL string) (version string, u *update, err error) {
	w := weighJSON(body)
	if w.Elements > rules.MaxElements {
		return "", &update{excess: w.Excess()}, nil
	}
	fields := map[string]json.RawMessage{}
	if err := json.Unmarshal(body, &fields); err != nil {
		return "", nil, fmt.Errorf("the answer is no DiscoveryResponse in JSON: %w", err)
	}
	resources := fields["resources"]
	delete(fields, "resources")
	rest, err := json.Marshal(fields)
	if err != nil {
		return "", nil, err
	}
	w = weighJSON(rest)
	if excess := w.Excess(); excess != "" {
		return "", &update{excess: excess}, nil
	}
	head := &discoveryv3.DiscoveryResponse{}
	if err := (protojson.UnmarshalOptions{DiscardUnknown: true}).Unmarshal(rest, head); err != nil {
		return "", nil, fmt.Errorf("the answer is no DiscoveryResponse in JSON: %w", err)
	}
	if head.GetTypeUrl() != "" && head.GetTypeUrl() != typeURL {
		return "", nil, errors.New(wrongStream(head.GetTypeUrl(), typeURL).whole)
	}
	var texts []json.RawMessage
	if len(resources) > 0 {
		if err := json.Unmarshal(resources, &texts); err != nil {
			return "", nil, fmt.Errorf("the answer's resources are no list: %w", err)
		}
	}
	u = &update{items: make([]item, len(texts)), errors: head.GetResourceErrors()}
	for i, text := range texts {
		u.items[i] = itemOfJSON(text, head.GetVersionInfo())
	}
	return head.GetVersionInfo(), u, nil
}

// itemOfJSON reads a resource. It drops unknown fields, because JSON does not say
// enough to keep them.
func itemOfJSON(text []byte, version string) item {
	w, packed := weighJSON(text), &anypb.Any{}
	wrong := w.Excess()
	if wrong == "" {
		if err := (protojson.UnmarshalOptions{DiscardUnknown: true}).Unmarshal(text, packed); err != nil {
			wrong = "it cannot be decoded: " + err.Error()
		}
	}
	if wrong != "" {
		names := struct {
			Name         string `json:"name"`
			ClusterName  string `json:"cluster_name"` //nolint:tagliatelle // as protobuf writes it
			ClusterName2 string `json:"clusterName"`
		}{}
		_ = json.Unmarshal(text, &names) // an unreadable resource has no name
		return item{name: names.Name + names.ClusterName + names.ClusterName2, version: version, wrong: wrong}
	}
	item, _ := unwrap(packed, version)
	return item
}

package demo

import (
	"io"
	"net/http"

	"hdsd/internal/demo/envoy"
)

// dataPlane takes the health by EDS.
type dataPlane interface {
	name() string
	// published returns the health of an endpoint from EDS, as far as the data plane shows
	// it: an Envoy shows UNKNOWN as HEALTHY and TIMEOUT as UNHEALTHY.
	published(address string) string
	traffic() (sent, failed int) // requests sent through it, if it routes
}

// envoyPlane is a real Envoy.
type envoyPlane struct {
	process *envoy.Process
	client  http.Client
}

func (p *envoyPlane) name() string { return "data plane " + p.process.ID + " (Envoy)" }

func (p *envoyPlane) published(address string) string {
	clusters, err := p.process.Clusters()
	if err != nil {
		return ""
	}
	return clusters[clusterName][address].EDSHealth
}

const requests = 20

func (p *envoyPlane) traffic() (sent, failed int) {
	for range requests {
		response, err := p.client.Get("http://" + p.process.Listen + "/")
		if err != nil {
			failed++
			continue
		}
		_, _ = io.Copy(io.Discard, response.Body) // only the status counts
		response.Body.Close()
		if response.StatusCode != http.StatusOK {
			failed++
		}
	}
	return requests, failed
}

package demo

import (
	"io"
	"net/http"

	"hdsd/internal/demo/envoy"
)

// dataPlane is whoever takes the health by EDS.
type dataPlane interface {
	name() string
	// told gives what it was told of an endpoint, as far as it tells: an Envoy
	// shows UNKNOWN as HEALTHY and TIMEOUT as UNHEALTHY.
	told(address string) string
	traffic() (sent, failed int) // requests sent through it, if it routes
}

// envoyPlane is a real Envoy.
type envoyPlane struct {
	process *envoy.Process
	client  http.Client
}

func (p *envoyPlane) name() string { return "data plane " + p.process.ID + " (Envoy)" }

func (p *envoyPlane) told(address string) string {
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
		_, _ = io.Copy(io.Discard, response.Body) // the status is what counts
		response.Body.Close()
		if response.StatusCode != http.StatusOK {
			failed++
		}
	}
	return requests, failed
}

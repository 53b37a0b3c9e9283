package link

import (
	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/protobuf/proto"

	replicav1 "hdsd/gen/hdsd/replica/v1"
)

// metrics are the metrics of all links.
type metrics struct {
	links          prometheus.Gauge
	sent, received traffic
}

// traffic counts the messages in one direction.
type traffic struct{ messages, bytes prometheus.Counter }

func newMetrics(r prometheus.Registerer) *metrics {
	messages := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "hdsd_replica_messages_total", Help: "Messages to and from other replicas."}, []string{"direction"})
	bytes := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "hdsd_replica_message_bytes_total", Help: "Bytes of these messages."}, []string{"direction"})
	m := &metrics{
		links:    prometheus.NewGauge(prometheus.GaugeOpts{Name: "hdsd_replica_links", Help: "Other replicas with an open link to this one."}),
		sent:     traffic{messages.WithLabelValues("sent"), bytes.WithLabelValues("sent")},
		received: traffic{messages.WithLabelValues("received"), bytes.WithLabelValues("received")},
	}
	if r != nil {
		r.MustRegister(m.links, messages, bytes)
	}
	return m
}

// count counts a message.
func (t traffic) count(f *replicav1.Frame) {
	t.messages.Inc()
	t.bytes.Add(float64(proto.Size(f)))
}

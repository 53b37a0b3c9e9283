package api

import (
	"sync"

	"google.golang.org/protobuf/proto"

	hdsdv1 "hdsd/gen/hdsd/v1"
	"hdsd/health"
	"hdsd/internal/wire"
)

// Event is one event of a watch: the health of an endpoint, then Synced after all endpoints,
// then transitions or, by cluster, changed clusters. Watchers share it, so it is encoded at most
// once in each of the two forms.
type Event struct {
	Endpoint   *EndpointHealth
	Synced     bool
	Transition *health.Transition
	Clusters   *ClusterChanges
	Token      string // to resume after this event; empty before Synced

	text, message form
}

// ClusterChanges are clusters with changed endpoints. More reports that others have changed, too.
type ClusterChanges struct {
	Clusters []Cluster
	More     bool
}

func (c *ClusterChanges) message() *hdsdv1.ClusterChanges {
	return &hdsdv1.ClusterChanges{Clusters: convertList(c.Clusters, clusterMessage), More: c.More}
}

// form is an encoded form of an event.
type form struct {
	once  sync.Once
	bytes []byte
	err   error
}

func (f *form) get(encode func() ([]byte, error)) ([]byte, error) {
	f.once.Do(func() { f.bytes, f.err = encode() })
	return f.bytes, f.err
}

// Message returns the event as an encoded WatchResponse.
func (e *Event) Message() (wire.Bytes, error) {
	return e.message.get(func() ([]byte, error) {
		m := &hdsdv1.WatchResponse{Token: e.Token}
		switch {
		case e.Endpoint != nil:
			m.Event = &hdsdv1.WatchResponse_Endpoint{Endpoint: endpointMessage(*e.Endpoint)}
		case e.Synced:
			m.Event = &hdsdv1.WatchResponse_Synced{Synced: &hdsdv1.Synced{}}
		case e.Clusters != nil:
			m.Event = &hdsdv1.WatchResponse_Clusters{Clusters: e.Clusters.message()}
		default:
			m.Event = &hdsdv1.WatchResponse_Transition{Transition: transitionMessage(*e.Transition)}
		}
		return proto.Marshal(m)
	})
}

// Text returns the server-sent event.
func (e *Event) Text() ([]byte, error) {
	return e.text.get(func() (_ []byte, err error) {
		var name string
		var text []byte
		switch {
		case e.Endpoint != nil:
			name = "endpoint"
			text, err = rowJSON(e.Endpoint, (*object).endpoint, func(e *EndpointHealth) *hdsdv1.Endpoint { return endpointMessage(*e) })
		case e.Synced:
			name = "synced"
			text, err = compactJSON(&hdsdv1.Synced{})
		case e.Clusters != nil:
			name = "clusters"
			text, err = compactJSON(e.Clusters.message())
		default:
			name = "transition"
			text, err = rowJSON(e.Transition, (*object).transition, func(t *health.Transition) *hdsdv1.Transition { return transitionMessage(*t) })
		}
		return appendEvent(make([]byte, 0, len(text)+frameSize), name, e.Token, text), err
	})
}

// frameSize bounds an event without its JSON.
const frameSize = 100

// Batch is some events for several watchers, which share it.
type Batch struct {
	Events []*Event

	text form
}

// Text returns the server-sent events of all.
func (b *Batch) Text() ([]byte, error) {
	return b.text.get(func() (text []byte, err error) {
		if len(b.Events) == 1 {
			return b.Events[0].Text()
		}
		size := 0
		for _, e := range b.Events {
			text, err := e.Text()
			if err != nil {
				return nil, err
			}
			size += len(text)
		}
		text = make([]byte, 0, size)
		for _, e := range b.Events {
			text = append(text, e.text.bytes...)
		}
		return text, nil
	})
}

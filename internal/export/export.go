package export

import (
	"io"
	"time"

	"github.com/parquet-go/parquet-go"
	"google.golang.org/protobuf/types/known/timestamppb"

	hdsdv1 "hdsd/gen/hdsd/v1"
)

// groupRows is the number of rows in a row group, which is in memory.
const groupRows = 16_384

// Transition is a row of transitions.
type Transition struct {
	Time         time.Time     `parquet:"time,timestamp(microsecond)"`
	Cluster      string        `parquet:"cluster,dict"`
	Address      string        `parquet:"address,dict"`
	Region       string        `parquet:"region,dict"`
	Zone         string        `parquet:"zone,dict"`
	SubZone      string        `parquet:"sub_zone,dict"`
	From         string        `parquet:"from,dict"`
	To           string        `parquet:"to,dict"`
	Reason       string        `parquet:"reason,zstd"`
	Observations []Observation `parquet:"observations,list"`
}

// Observation is a vote behind a transition.
type Observation struct {
	Checker        string     `parquet:"checker,dict"`
	Status         string     `parquet:"status,dict"`
	HTTPStatusCode *int32     `parquet:"http_status_code,optional"`
	Time           *time.Time `parquet:"time,optional,timestamp(microsecond)"`
	Disbelieved    string     `parquet:"disbelieved,dict"`
}

// Event is a row of events.
type Event struct {
	Time     time.Time `parquet:"time,timestamp(microsecond)"`
	Kind     string    `parquet:"kind,dict"`
	Cluster  string    `parquet:"cluster,dict"`
	Address  string    `parquet:"address,dict"`
	Checker  string    `parquet:"checker,dict"`
	Region   string    `parquet:"region,dict"`
	Zone     string    `parquet:"zone,dict"`
	SubZone  string    `parquet:"sub_zone,dict"`
	Author   string    `parquet:"author,dict"`
	Identity string    `parquet:"identity,dict"`
	Text     string    `parquet:"text,zstd"`
}

// Writer writes rows of one type.
type Writer[Message, Row any] struct {
	writer  *parquet.GenericWriter[Row]
	row     func(Message) Row
	waiting []Row
}

// NewTransitions returns a Writer of transitions.
func NewTransitions(w io.Writer) *Writer[*hdsdv1.Transition, Transition] {
	return newWriter(w, transition)
}

// NewEvents returns a Writer of events.
func NewEvents(w io.Writer) *Writer[*hdsdv1.Event, Event] { return newWriter(w, event) }

func newWriter[Message, Row any](w io.Writer, row func(Message) Row) *Writer[Message, Row] {
	return &Writer[Message, Row]{
		writer: parquet.NewGenericWriter[Row](w, parquet.MaxRowsPerRowGroup(groupRows), parquet.CreatedBy("hdsd", "", "")),
		row:    row,
	}
}

// batch is the number of rows written at once.
const batch = 256

// Write adds a row.
func (w *Writer[Message, Row]) Write(m Message) error {
	if w.waiting = append(w.waiting, w.row(m)); len(w.waiting) < batch {
		return nil
	}
	return w.flush()
}

func (w *Writer[Message, Row]) flush() error {
	_, err := w.writer.Write(w.waiting)
	clear(w.waiting)
	w.waiting = w.waiting[:0]
	return err
}

// Close writes the rest, and the end of the file.
func (w *Writer[Message, Row]) Close() error {
	if err := w.flush(); err != nil {
		return err
	}
	return w.writer.Close()
}

func transition(t *hdsdv1.Transition) Transition {
	row := Transition{
		Time: t.GetTime().AsTime(), Cluster: t.GetCluster(), Address: t.GetAddress(),
		Region: t.GetLocality().GetRegion(), Zone: t.GetLocality().GetZone(), SubZone: t.GetLocality().GetSubZone(),
		From: t.GetFrom().String(), To: t.GetTo().String(), Reason: t.GetReason(),
	}
	for _, o := range t.GetObservations() {
		vote := Observation{Checker: o.GetChecker(), Status: o.GetStatus().String(), Time: moment(o.GetTime()), Disbelieved: o.GetDisbelieved()}
		if o.HttpStatusCode != nil {
			vote.HTTPStatusCode = new(int32(o.GetHttpStatusCode()))
		}
		row.Observations = append(row.Observations, vote)
	}
	return row
}

// moment returns nil for an absent time.
func moment(t *timestamppb.Timestamp) *time.Time {
	if t == nil {
		return nil
	}
	return new(t.AsTime())
}

func event(e *hdsdv1.Event) Event {
	return Event{
		Time: e.GetTime().AsTime(), Kind: e.GetKind().String(), Cluster: e.GetCluster(), Address: e.GetAddress(), Checker: e.GetChecker(),
		Region: e.GetLocality().GetRegion(), Zone: e.GetLocality().GetZone(), SubZone: e.GetLocality().GetSubZone(),
		Author: e.GetAuthor(), Identity: e.GetIdentity(), Text: e.GetText(),
	}
}

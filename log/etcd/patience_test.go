package etcd

import (
	"testing"
	"time"
)

func TestWritesHaveMoreTimeAtASlowEtcd(t *testing.T) {
	var p patience
	for i, step := range []struct{ took, want time.Duration }{
		{time.Millisecond, callTimeout},
		{callTimeout, 2 * callTimeout},
		{2 * callTimeout, 4 * callTimeout},
		{300 * time.Millisecond, 2 * callTimeout},
		{300 * time.Millisecond, 600 * time.Millisecond},
		{time.Millisecond, callTimeout},
		{time.Hour, writeTimeout},
		{time.Millisecond, writeTimeout / 2},
	} {
		if p.note(step.took); p.get() != step.want {
			t.Fatalf("after step %d, the timeout is %v, want %v", i, p.get(), step.want)
		}
	}
}

package check

import (
	"fmt"
	"strings"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	redisv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/health_checkers/redis/v3"
)

const redisName = "envoy.health_checkers.redis"

// redisConnect is the connect timeout, as in Envoy for clusters from HDS. A check's
// timeout may be longer.
const redisConnect = time.Second

// redisCheck sends PING, or EXISTS of a key that must not exist.
type redisCheck struct {
	request []byte
	exists  bool
}

func newRedisCheck(c *corev3.HealthCheck_CustomHealthCheck) (*redisCheck, error) {
	var config redisv3.Redis
	if c.GetName() != redisName || c.GetTypedConfig().UnmarshalTo(&config) != nil {
		return nil, fmt.Errorf("%q of type %q is not supported; this checker has %s", c.GetName(), c.GetTypedConfig().GetTypeUrl(), redisName)
	}
	if config.GetAwsIam() != nil {
		return nil, fmt.Errorf("aws_iam is not supported")
	}
	r := &redisCheck{exists: config.GetKey() != "", request: []byte("*1\r\n$4\r\nPING\r\n")}
	if r.exists {
		r.request = fmt.Appendf(nil, "*2\r\n$6\r\nEXISTS\r\n$%d\r\n%s\r\n", len(config.GetKey()), config.GetKey())
	}
	return r, nil
}

// judge returns the outcome of a reply.
func (r *redisCheck) judge(v reply) Outcome {
	if v.kind == '-' || v.kind == '!' {
		words := strings.FieldsFunc(v.text, func(c rune) bool { return c == ' ' })
		switch {
		case len(words) == 3 && (words[0] == "MOVED" || words[0] == "ASK"):
			return Passed // a working member of a Redis cluster
		case len(words) > 0 && words[0] == "CLUSTERDOWN":
			return NetworkFailure
		}
		return Failed
	}
	if r.exists && v.kind == ':' && v.number == 0 || !r.exists && v.kind == '+' && v.text == "PONG" {
		return Passed
	}
	return Failed
}

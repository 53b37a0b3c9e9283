package maintenance

import (
	"fmt"

	"hdsd/config"
	configv1 "hdsd/gen/hdsd/config/v1"
	"hdsd/log/etcd"
)

// Options returns the options for etcd of a configuration with replication.
func Options(c *configv1.Config) (o etcd.Options, err error) {
	e := c.GetReplication().GetEtcd()
	o = etcd.Options{
		Endpoints: e.GetEndpoints(), Prefix: e.GetPrefix(), Username: e.GetUsername(), ID: c.GetNodeId(), Address: c.GetReplication().GetPeer().GetAdvertise(),
		TTL: c.GetReplication().GetSessionTtl().AsDuration(),
	}
	if file := e.GetPasswordFile(); file != "" {
		o.Password = func() (string, error) {
			password, err := config.ReadSecret(file)
			return string(password), err
		}
	}
	if o.TLS, err = config.EtcdTLS(e); err != nil {
		return o, fmt.Errorf("replication.etcd.tls: %w", err)
	}
	return o, nil
}

// Package page is hdsd's page for browsers: health by cluster, endpoint and time, live. `make
// page` builds it from src. It uses hdsd's own API only.
package page

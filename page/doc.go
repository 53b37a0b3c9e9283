// Package page is the page that hdsd shows in a browser: health by cluster, endpoint and
// time, live. It is made of src by `make page` and asks hdsd's own API, and nobody else.
package page

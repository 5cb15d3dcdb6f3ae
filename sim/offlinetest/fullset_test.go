package offlinetest

import (
	"fmt"
	"io"
	"net/http"
	"sync"
	"testing"
	"time"

	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// maxAnon bounds the anonymous memory of a hub with all that a node has.
const maxAnon = 48 << 20

// TestFullSet: a hub with 30 pods, 200 Secrets and ConfigMaps, each watched by itself, and 1,000 slices of 100
// endpoints in its relays takes little memory, with the cloud and, after kill -9, without.
func TestFullSet(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes minutes")
	}
	const pods, files, slices, endpoints = 30, 200, 1000, 100
	b := newBed(t, unread())
	b.fill(pods, files)
	b.fillSlices(slices, endpoints)
	before := b.startAgent("kubelet", runtime.ContentTypeProtobuf, files)
	before.synced()
	eventually(t, "the relay to have all", func() bool {
		return b.metric("weir_relay_objects", "resource", endpointSlices) >= slices
	})
	b.kept(2 + files)
	b.measure("with the cloud")
	b.cut()
	before.stop()

	began := time.Now()
	b.restart()
	resp, err := b.httpClient().Get(b.url + "/api/v1/pods?fieldSelector=spec.nodeName%3D" + edge)
	check(t, err)
	answered := time.Since(began)
	_, err = io.Copy(io.Discard, resp.Body)
	check(t, err)
	check(t, resp.Body.Close())
	if resp.StatusCode != http.StatusOK {
		t.Errorf("the first answer is %s", resp.Status)
	}
	after := b.startAgent("kubelet", runtime.ContentTypeProtobuf, files)
	after.synced()
	all := time.Since(began)
	if diff := before.same(after); diff != "" {
		t.Error(diff)
	}
	t.Logf("from kill -9 to the first answer %v, to all informers %v; store %.1f MB", answered, all,
		b.metric("weir_store_bytes")/1e6)
	b.measure("without the cloud")
}

// measure tells what the hub takes, and fails if that is too much.
func (b *bed) measure(when string) {
	b.t.Helper()
	u, err := b.hub.Usage()
	check(b.t, err)
	b.t.Logf("%s: RssAnon %.1f MB, VmRSS %.1f MB", when, float64(u.RSSAnon)/1e6, float64(u.RSS)/1e6)
	if u.RSSAnon > maxAnon {
		b.t.Errorf("%s the hub takes %d bytes, more than %d", when, u.RSSAnon, maxAnon)
	}
}

func (b *bed) fillSlices(slices, endpoints int) {
	b.t.Helper()
	api := b.admin.DiscoveryV1().EndpointSlices("default")
	names := make(chan int)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for i := range names {
				s := &discoveryv1.EndpointSlice{
					ObjectMeta: metav1.ObjectMeta{
						Name: fmt.Sprintf("slice-%04d", i), Labels: map[string]string{
							discoveryv1.LabelServiceName: fmt.Sprintf("service-%04d", i),
						},
					},
					AddressType: discoveryv1.AddressTypeIPv4,
				}
				for j := range endpoints {
					node, ready := fmt.Sprintf("node-%03d", j), true
					s.Endpoints = append(s.Endpoints, discoveryv1.Endpoint{
						Addresses: []string{fmt.Sprintf("10.%d.%d.%d", i/256, i%256, j)}, NodeName: &node,
						Conditions: discoveryv1.EndpointConditions{Ready: &ready},
					})
				}
				if _, err := api.Create(b.t.Context(), s, metav1.CreateOptions{}); err != nil {
					b.t.Error(err)
				}
			}
		})
	}
	for i := range slices {
		names <- i
	}
	close(names)
	wg.Wait()
}

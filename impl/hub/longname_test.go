package hub

import (
	"strings"
	"testing"
)

// TestLongNames: nothing that a client sends keeps the store from the disk, neither a selector nor a name that is
// longer than what the store can file.
func TestLongNames(t *testing.T) {
	b, link := offlineBed(t)
	b.clouds[0].put("default", "web")
	cert := b.ca.tls("system:node:edge-1", "system:nodes")
	node := b.client(&cert)
	stop := b.start()
	b.here()
	b.list(node, "")
	b.kept(1)
	var long strings.Builder
	for long.Len() < 40<<10 {
		long.WriteString(",!aaaaaaaaaaaaaaaaaaaaaaaa")
	}
	_, _, resp := b.list(node, "?labelSelector="+long.String()[1:])
	t.Log("a list with a selector of 40 kB: ", resp.Status)
	resp, _ = get(t, node, b.url()+"/api/v1/namespaces/default/endpoints/"+strings.Repeat("x", 32_400))
	t.Log("a get of a name of 32 kB: ", resp.Status)

	b.clouds[0].put("default", "later")
	b.list(node, "")
	eventually(t, "the store to be written", func() bool {
		st := b.hub.store.Stats()
		return st.Flushes > 0 && st.PendingBytes == 0 || st.LastError != ""
	})
	if st := b.hub.store.Stats(); st.LastError != "" {
		t.Errorf("the store is not written: %s", st.LastError)
	}
	stop()
	link.set(true)
	stop = b.start()
	defer stop()
	b.away()
	if names, _, _ := b.list(node, ""); !strings.Contains(names, "later") {
		t.Errorf("after a restart without the cloud: %q", names)
	}
}

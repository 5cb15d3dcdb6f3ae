package rest

import (
	"encoding/json"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/weir-edge/weir/impl/relay"
	"github.com/weir-edge/weir/impl/relay/wire"
)

// tablePrinter gives the columns that kubectl shows. Columns and cells are those of kube-apiserver 1.37
// (pkg/printers/internalversion/printers.go, which no module outside k8s.io/kubernetes exports).
type tablePrinter struct {
	columns []metav1.TableColumnDefinition
	cells   func(m relay.Message, now time.Time) []any
	// conditions of a row; nil: there are none
	conditions func(m relay.Message) []metav1.TableRowCondition
}

// tableOf is the printer of a resource; nil: tables of it come from the cloud.
func tableOf(res relay.Resource) *tablePrinter {
	switch res.WireKind() {
	case wire.Kind{APIVersion: "v1", Kind: "Endpoints"}:
		return endpointsTable
	case wire.Kind{APIVersion: "v1", Kind: "Node"}:
		return nodeTable
	case wire.Kind{APIVersion: "v1", Kind: "Pod"}:
		return podTable
	case wire.Kind{APIVersion: "discovery.k8s.io/v1", Kind: "EndpointSlice"}:
		return endpointSliceTable
	}
	return nil
}

var metaDoc = metav1.ObjectMeta{}.SwaggerDoc()

func column(name, description string) metav1.TableColumnDefinition {
	c := metav1.TableColumnDefinition{Name: name, Type: "string", Description: description}
	if name == "Name" {
		c.Format = "name"
	}
	return c
}

// wide is a column of kubectl -o wide.
func wide(name, description string) metav1.TableColumnDefinition {
	c := column(name, description)
	c.Priority = 1
	return c
}

var endpointsTable = &tablePrinter{
	columns: []metav1.TableColumnDefinition{
		column("Name", metaDoc["name"]),
		column("Endpoints", corev1.Endpoints{}.SwaggerDoc()["subsets"]),
		column("Age", metaDoc["creationTimestamp"]),
	},
	cells: func(m relay.Message, now time.Time) []any {
		e := m.(*corev1.Endpoints)
		return []any{e.Name, formatSubsets(e.Subsets), age(e.CreationTimestamp, now)}
	},
}

var endpointSliceTable = &tablePrinter{
	columns: []metav1.TableColumnDefinition{
		column("Name", metaDoc["name"]),
		column("AddressType", discoveryv1.EndpointSlice{}.SwaggerDoc()["addressType"]),
		column("Ports", discoveryv1.EndpointSlice{}.SwaggerDoc()["ports"]),
		column("Endpoints", discoveryv1.EndpointSlice{}.SwaggerDoc()["endpoints"]),
		column("Age", metaDoc["creationTimestamp"]),
	},
	cells: func(m relay.Message, now time.Time) []any {
		s := m.(*discoveryv1.EndpointSlice)
		return []any{s.Name, string(s.AddressType), formatPorts(s.Ports), formatAddresses(s.Endpoints), age(s.CreationTimestamp, now)}
	},
}

// table encodes objects as one Table. In a watch, columns come with the first event only.
func (e *encoder) table(items []*wire.Object, meta wire.ListMeta) ([]byte, error) {
	p := tableOf(e.res)
	t := metav1.Table{
		TypeMeta: metav1.TypeMeta{Kind: "Table", APIVersion: e.metaVersion()},
		ListMeta: metav1.ListMeta{ResourceVersion: wire.FormatVersion(meta.Version), Continue: meta.Continue, RemainingItemCount: meta.Remaining},
		Rows:     make([]metav1.TableRow, 0, len(items)),
	}
	if !e.headers {
		t.ColumnDefinitions, e.headers = p.columns, true
	}
	now := e.clock.Now()
	for _, o := range items {
		m, err := e.decode(o)
		if err != nil {
			return nil, err
		}
		row := metav1.TableRow{Cells: p.cells(m, now)}
		if p.conditions != nil {
			row.Conditions = p.conditions(m)
		}
		if row.Object, err = e.rowObject(o); err != nil {
			return nil, err
		}
		t.Rows = append(t.Rows, row)
	}
	return json.Marshal(t)
}

func (e *encoder) rowObject(o *wire.Object) (runtime.RawExtension, error) {
	whatever := output{media: mediaJSON, beta: e.out.beta}
	switch e.out.include {
	case metav1.IncludeNone:
		return runtime.RawExtension{}, nil
	case metav1.IncludeObject:
	default:
		whatever.shape = metadataOnly
	}
	raw, err := newEncoder(e.res, e.clock, whatever).object(o, false)
	return runtime.RawExtension{Raw: raw}, err
}

func age(t metav1.Time, now time.Time) string {
	if t.IsZero() {
		return "<unknown>"
	}
	return duration.HumanDuration(now.Sub(t.Time))
}

// shown is how many addresses or ports a cell shows.
const shown = 3

// cell joins what is shown and counts the rest.
func cell(list []string, count int, empty string) string {
	s := strings.Join(list, ",")
	switch {
	case count > len(list):
		return fmt.Sprintf("%s + %d more...", s, count-shown)
	case s == "":
		return empty
	}
	return s
}

func formatSubsets(subsets []corev1.EndpointSubset) string {
	if len(subsets) == 0 {
		return "<none>"
	}
	var list []string
	count := 0
	for i := range subsets {
		ports := subsets[i].Ports
		if len(ports) == 0 { // headless services may have none
			ports = []corev1.EndpointPort{{Port: -1}}
		}
		for _, port := range ports {
			count += len(subsets[i].Addresses)
			for _, a := range subsets[i].Addresses {
				if len(list) == shown {
					break
				}
				if port.Port < 0 {
					list = append(list, a.IP)
				} else {
					list = append(list, net.JoinHostPort(a.IP, strconv.Itoa(int(port.Port))))
				}
			}
		}
	}
	return cell(list, count, "")
}

func formatPorts(ports []discoveryv1.EndpointPort) string {
	var list []string
	for _, p := range ports {
		if len(list) == shown {
			break
		}
		switch {
		case p.Port != nil:
			list = append(list, strconv.Itoa(int(*p.Port)))
		case p.Name != nil:
			list = append(list, *p.Name)
		default:
			list = append(list, "*")
		}
	}
	return cell(list, len(ports), "<unset>")
}

func formatAddresses(endpoints []discoveryv1.Endpoint) string {
	var list []string
	count := 0
	for _, e := range endpoints {
		for _, a := range e.Addresses {
			if len(list) < shown {
				list = append(list, a)
			}
			count++
		}
	}
	return cell(list, count, "<unset>")
}

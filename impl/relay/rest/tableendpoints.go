package rest

import (
	"net"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-edge/weir/impl/relay"
)

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
		return []any{
			s.Name, string(s.AddressType), formatPorts(s.Ports), formatAddresses(s.Endpoints), age(s.CreationTimestamp, now),
		}
	},
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

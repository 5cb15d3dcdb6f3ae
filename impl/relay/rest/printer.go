package rest

import (
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/weir-edge/weir/impl/relay"
)

// tablePrinter gives the columns that kubectl shows. Columns and cells are those of kube-apiserver 1.37
// (pkg/printers/internalversion/printers.go, which no module outside k8s.io/kubernetes exports).
type tablePrinter struct {
	columns []metav1.TableColumnDefinition
	cells   func(m relay.Message, now time.Time) []any
	// conditions of a row; nil: there are none
	conditions func(m relay.Message) []metav1.TableRowCondition
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

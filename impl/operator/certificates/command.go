package certificates

import (
	"github.com/spf13/cobra"

	"github.com/weir-edge/weir/impl/commands"
)

// Command is weir pki.
func Command() *cobra.Command {
	return commands.Group("pki", "make, show and replace certificates and authorities of pools",
		commands.New("table", "list the kinds of certificates: what stands in each, and who signs it", 0, table),
		commands.New("request", "print a request for a certificate", 0, request),
		commands.New("check FILE…",
			"show certificates: their contents, the authority that signed them, and when they expire", commands.Any, check),
		commands.New("authority", "make the authority of a pool, by itself or below an existing one", 0, authority),
		commands.New("files", "make all files of a pool from its authority", 0, files),
		commands.New("rotate", "replace the authority of a pool by weir-manager, also one whose key is lost", 0, rotate),
	)
}

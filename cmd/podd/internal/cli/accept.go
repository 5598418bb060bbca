package cli

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/alecthomas/kong"

	"podd/cmd/podd/internal/client"
	"podd/cmd/podd/internal/iostreams"
	"podd/cmd/podd/internal/printer"
	"podd/server"
)

// AcceptCmd is the podd accept command.
type AcceptCmd struct {
	client.Flags
	Change string `arg:"" enum:"node-name,empty" help:"The change to accept. node-name: the new hostname, or the new name that the cloud provider reports. empty: a manifest directory that is empty or has lost manifests."`
	Source string `arg:"" optional:"" help:"With empty: the manifest directory or file, as it is named in podd's flags or configuration." complete:"file"`
}

// Help describes the changes that can be accepted.
func (c *AcceptCmd) Help() string {
	return `The name of the node is part of the names and UIDs of its pods. podd stores it in its root directory when it first starts. If the hostname changes later, podd keeps the stored name, replaces no pod, and reports a problem.

    podd accept node-name

makes podd use the current hostname. Every pod of a file or URL gets a new name and UID: podd stops it with its grace period and then starts it again, even if it had finished. A name given with --hostname-override takes effect in the same way when podd starts, and does not need "podd accept". The only way to rename the node of a cluster is --hostname-override together with a kubeconfig for the new name.

If a manifest directory is empty, it may not be the directory that podd read before: its filesystem may not be mounted, or the directory may have been deleted and created again. In these cases podd keeps the pods and reports a problem. podd also keeps the pods of manifests that are missing from a mount point whose filesystem is not mounted. If a directory that was created again contains some manifests, podd waits until it has not changed for 10 seconds and then stops the pods of the missing manifests. podd recognizes a directory by its inode, birth time and mount, also after a reboot. If manifests are removed from a directory that was not replaced, their pods stop without "podd accept". If podd cannot read its records in <root-dir>/sources, it reports every empty directory.

    podd accept empty /etc/podd/manifests

accepts the directory as it is, and stops the pods of the missing manifests.`
}

// Validate returns an error if the argument SOURCE is missing or not permitted.
func (c *AcceptCmd) Validate(*kong.Context) error {
	switch {
	case c.Change == "empty" && c.Source == "":
		return errors.New("missing argument SOURCE, the directory that is empty or has lost manifests; use \"podd accept empty SOURCE\"")
	case c.Change != "empty" && c.Source != "":
		return fmt.Errorf("unexpected argument %q", c.Source)
	}
	return nil
}

// Run sends the running podd a request to accept the change, and prints the effect of the change.
func (c *AcceptCmd) Run(ctx context.Context, s iostreams.Streams) error {
	p, err := c.Connect(ctx)
	if err != nil {
		return err
	}
	if c.Source != "" {
		if c.Source, err = filepath.Abs(c.Source); err != nil {
			return fmt.Errorf("accepting %s: %w", c.Source, err)
		}
	}
	message, err := p.Accept(ctx, server.AcceptedChange{Change: c.Change, Source: c.Source})
	if err == nil {
		fmt.Fprintf(s.Err, "podd: %s\n", printer.Escape(message))
	}
	return err
}

package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"podd/cmd/podd/internal/client"
	"podd/cmd/podd/internal/iostreams"
	"podd/cmd/podd/internal/printer"
	"podd/server"
)

// ImagesCmd is the podd images command.
type ImagesCmd struct {
	client.Flags
	Action string   `arg:"" optional:"" enum:"ls,rm,prune" default:"ls" help:"ls lists the images. rm removes the named images. prune removes all images that are not in use."`
	Images []string `arg:"" optional:"" name:"image" help:"Names or IDs of images." complete:"image"`
	Output string   `short:"o" enum:",wide,json,yaml,name" default:"" placeholder:"FORMAT" help:"Output format of ls. One of: wide, json, yaml, name."`
}

// Help describes which images are in use, and when podd removes images by itself.
func (c *ImagesCmd) Help() string {
	return `An image is in use if a pod in a manifest needs it for a container or a volume, even if the pod waits, or if any container on the node was created from it or mounts it. The containers may belong to other programs. The sandbox image, and all images that the configuration of the runtime pins, are always in use by the runtime. podd never removes an image that is in use.

podd removes other images by itself when the usage of the image file system reaches imageGCHighThresholdPercent (85), until it is below imageGCLowThresholdPercent (80). The image that was not used for the longest time is removed first. The last column of ls shows what would be removed now, and why.

rm and prune do not wait for a threshold. rm removes an image with all its names.`
}

// Validate returns an error for a combination of arguments and flags that is not permitted.
func (c *ImagesCmd) Validate(*kong.Context) error {
	switch {
	case c.Action == "rm" && len(c.Images) == 0:
		return errors.New("missing images to remove; \"podd images\" lists the images, and \"podd images prune\" removes all images that are not in use")
	case c.Action == "prune" && len(c.Images) > 0:
		return errors.New("prune takes no arguments; to remove single images, use rm")
	case c.Action == "ls" && len(c.Images) > 0:
		return errors.New("ls takes no arguments")
	case c.Action != "ls" && c.Output != "":
		return errors.New("-o can be used only with ls")
	}
	return nil
}

// Run lists or removes images on the node of the running podd.
func (c *ImagesCmd) Run(ctx context.Context, s iostreams.Streams) error {
	p, err := c.Connect(ctx)
	if err != nil {
		return err
	}
	switch c.Action {
	case "rm":
		return removeImages(ctx, p, c.Images, s)
	case "prune":
		return pruneImages(ctx, p, s)
	}
	list, err := p.ListImages(ctx)
	if err != nil {
		return err
	}
	return c.print(list, s)
}

// removeImages removes images. It continues after an error.
func removeImages(ctx context.Context, p *client.Client, names []string, s iostreams.Streams) error {
	var errs []error
	for _, name := range names {
		i, err := p.RemoveImage(ctx, name)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		printRemoved(i, s)
	}
	return errors.Join(errs...)
}

// pruneImages removes all images that are not in use.
func pruneImages(ctx context.Context, p *client.Client, s iostreams.Streams) error {
	result, err := p.PruneImages(ctx)
	if err != nil {
		return err
	}
	var bytes int64
	for _, i := range result.Removed {
		printRemoved(i, s)
		bytes += i.Bytes
	}
	if result.Error != "" {
		return errors.New(result.Error)
	}
	if len(result.Removed) == 0 {
		fmt.Fprintln(s.Err, "podd: no unused images")
		return nil
	}
	fmt.Fprintf(s.Err, "podd: %s removed, %s\n", printer.FormatCount(len(result.Removed), "image"), formatSize(bytes))
	return nil
}

// printRemoved prints the names of a removed image.
func printRemoved(i server.Image, s iostreams.Streams) {
	name := strings.Join(i.Names, ", ")
	if name == "" {
		name = i.ID
	}
	fmt.Fprintf(s.Err, "podd: image %s removed\n", printer.Escape(name))
}

// print prints images in the selected format.
func (c *ImagesCmd) print(list server.ImageList, s iostreams.Streams) error {
	switch c.Output {
	case "json", "yaml":
		return printer.WriteData(s.Out, c.Output, list)
	}
	if c.Output == "name" {
		return printImageNames(list.Images, s.Out)
	}
	if len(list.Images) > 0 {
		if _, err := io.WriteString(s.Out, c.table(list.Images, time.Now())); err != nil {
			return err
		}
	}
	_, err := io.WriteString(s.Err, printer.Escape(imageSummary(list))+"\n")
	return err
}

// printImageNames prints the names of images, one per line.
func printImageNames(images []server.Image, w io.Writer) error {
	var b strings.Builder
	for _, i := range images {
		for _, name := range imageNames(i) {
			b.WriteString(printer.Escape(name) + "\n")
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// table returns the table of images, with a row for each name of an image.
func (c *ImagesCmd) table(images []server.Image, now time.Time) string {
	lines := [][]string{{"IMAGE", "IMAGE ID", "SIZE", "LAST USED", "USED BY", "GARBAGE COLLECTION"}}
	for _, i := range images {
		names := i.Names
		if len(names) == 0 {
			names = []string{"<none>"}
		}
		for _, name := range names {
			row := []string{name, c.formatID(i.ID), formatSize(i.Bytes), formatLastUsed(i, now), c.formatUsers(i), formatRemoval(i)}
			for n := range row {
				row[n] = printer.Escape(row[n])
			}
			lines = append(lines, row)
		}
	}
	return (&printer.Table{}).FormatLines(lines)
}

// imageNames returns the names of an image, or its ID if it has none.
func imageNames(i server.Image) []string {
	if len(i.Names) == 0 {
		return []string{i.ID}
	}
	return i.Names
}

// formatID returns an image ID, shortened as in podman and crictl unless the format is wide.
func (c *ImagesCmd) formatID(id string) string {
	const digits = 12
	if c.Output == "wide" {
		return id
	}
	id = strings.TrimPrefix(id, "sha256:")
	return id[:min(len(id), digits)]
}

// formatLastUsed returns how long ago an image was in use.
func formatLastUsed(i server.Image, now time.Time) string {
	switch {
	case i.InUse():
		return "in use"
	case i.LastUsed == nil:
		return "<never>"
	}
	return printer.FormatAge(*i.LastUsed, now) + " ago"
}

// formatUsers returns the users of an image, at most two of them unless the format is wide.
func (c *ImagesCmd) formatUsers(i server.Image) string {
	const limit = 2
	users := i.Users
	if i.IsUsedByRuntime() {
		users = append([]string{"container runtime"}, users...)
	}
	if c.Output == "wide" || len(users) <= limit {
		return printer.OrNone(strings.Join(users, ", "))
	}
	return fmt.Sprintf("%s and %d more", strings.Join(users[:limit], ", "), len(users)-limit)
}

// formatRemoval returns whether the garbage collection would remove an image now, and why.
func formatRemoval(i server.Image) string {
	if i.Removal == nil {
		return "keep: " + i.KeepReason
	}
	return "remove: " + i.Removal.Message
}

// imageSummary returns the number of images, and the state of the disk.
func imageSummary(list server.ImageList) string {
	unused, bytes := 0, int64(0)
	for _, i := range list.Images {
		if !i.InUse() {
			unused++
			bytes += i.Bytes
		}
	}
	text := fmt.Sprintf("podd: %s, %d not in use (%s); ", printer.FormatCount(len(list.Images), "image"), unused, formatSize(bytes))
	if list.DiskError != "" {
		return text + "the disk usage is unknown: " + list.DiskError
	}
	text += fmt.Sprintf("disk usage %d%%", list.DiskUsedPercent)
	if list.HighThresholdPercent < 100 {
		text += fmt.Sprintf(", unused images are removed at %d%%", list.HighThresholdPercent)
	}
	return text
}

package offline

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"podd/cmd/podd/internal/config"
	"podd/cmd/podd/internal/exit"
	"podd/cmd/podd/internal/iostreams"
	"podd/cmd/podd/internal/paths"
	"podd/cmd/podd/internal/podrunner"
	"podd/cmd/podd/internal/printer"
	"podd/cmd/podd/internal/rootdir"
	"podd/manifest"
	"podd/reconcile/journal"
	"podd/reconcile/volume/claim"
	"podd/server"
)

// VolumeCmd is the podd volume command. It accepts the flags of podd run, because they can define
// sources. The claims in these sources are desired, too.
type VolumeCmd struct {
	config.Flags
	Action string   `arg:"" enum:"ls,rm" help:"ls lists the volumes. rm removes the volumes of the named claims with their data."`
	Output string   `short:"o" enum:",json,yaml" default:"" placeholder:"FORMAT" help:"Output format of ls. One of: json, yaml."`
	Claims []string `arg:"" optional:"" name:"claim" help:"Claims as NAMESPACE/NAME, or NAME in the default namespace." complete:"claim"`
}

// KubeletFlags returns the flags that VolumeCmd shares with podd run. Package main adds the flags
// that only the kubelet has.
func (c *VolumeCmd) KubeletFlags() *config.Flags { return &c.Flags }

// Validate returns an error for rm without claims or with an output format.
func (c *VolumeCmd) Validate(*kong.Context) error {
	if c.Action == "rm" && len(c.Claims) == 0 {
		return errors.New("missing claims to remove; \"podd volume ls\" lists the claims")
	}
	if c.Action == "rm" && c.Output != "" {
		return errors.New("-o can be used only with ls")
	}
	return nil
}

// Run lists or removes the data of claims. Run does not remove the data of a claim that is desired
// or in use. A claim is desired if the running podd or a configured source contains it. A claim is
// in use if podd still has a directory for a pod that refers to the claim.
func (c *VolumeCmd) Run(ctx context.Context, s iostreams.Streams) error {
	cfg, warnings, err := config.LoadForHost(c.Flags)
	config.WriteWarnings(s.Err, warnings)
	if err != nil {
		return err
	}
	running := fetchRunningView(ctx, &c.Flags, &cfg, s.Err)
	if err := cfg.CheckNodeName(); err != nil {
		return err
	}
	v := volumeCommand{cfg: &cfg, stdout: s.Out, stderr: s.Err, claims: claim.Store{Root: rootdir.ClaimsPath(cfg.RootDir)}}
	v.desired, err = desiredClaims(ctx, running, &cfg)
	switch {
	case errors.Is(err, errNoSources) && c.Action == "ls":
	case errors.Is(err, errNoSources):
		return exit.NewError(exit.Usage, fmt.Errorf("removing volumes: %w", err))
	case err != nil:
		return err
	}
	if c.Action == "ls" {
		return v.print(c.Output)
	}
	return v.remove(ctx, c.Claims)
}

// A volumeCommand is one call of podd volume.
type volumeCommand struct {
	cfg            *config.Config
	stdout, stderr io.Writer
	claims         claim.Store
	desired        []server.ClaimView
}

// claimRequest returns the requested size and the position of a claim, or "" if the claim is
// not desired.
func (v *volumeCommand) claimRequest(name types.NamespacedName) (size, position string) {
	for _, c := range v.desired {
		if c.Claim == server.Key(name) {
			return c.Requested, manifest.Origin{Path: c.Path, Line: c.Line}.String()
		}
	}
	return "", ""
}

// podRoots returns the directories that contain pod directories: one directory of the daemon, and
// one directory for each "podd run --runonce".
func (v *volumeCommand) podRoots() []string {
	roots := []string{rootdir.PodsPath(v.cfg.RootDir)}
	for _, run := range (podrunner.Dirs{Root: v.cfg.RootDir}).ListAll() {
		roots = append(roots, rootdir.PodsPath(run))
	}
	return roots
}

// podNames returns the names of the pods with the given UIDs, sorted and without the node name. If
// the name of a pod is unknown, podNames returns the UID of the pod instead.
func (v *volumeCommand) podNames(uids []types.UID) ([]string, error) {
	var list []string
	byUID := map[types.UID]types.NamespacedName{}
	for _, root := range v.podRoots() {
		names, err := journal.Store{Root: root}.PodNames()
		if err != nil {
			return nil, err
		}
		for uid, name := range names {
			byUID[uid] = name
		}
	}
	for _, uid := range uids {
		name := strings.TrimSuffix(byUID[uid].Name, "-"+v.cfg.NodeName)
		list = append(list, cmp.Or(name, string(uid)))
	}
	slices.Sort(list)
	return slices.Compact(list), nil
}

// A claimVolume is the data of one claim.
type claimVolume struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	Requested string `json:"requested,omitempty"` // requested size, such as "1Gi"; "" if the claim is not desired
	// UsedBy contains the pods that refer to the claim and have a directory.
	UsedBy []string `json:"usedBy,omitempty"`
	// DefinedAt is the position of the claim in its file, or "" if the claim is not desired.
	DefinedAt string `json:"wantedBy,omitempty"`
	// Volume is the PersistentVolume of the claim; "" for a directory of podd.
	Volume string `json:"volume,omitempty"`
	Path   string `json:"path"`
}

// claimVolumes returns the volumes of all claims with data on this node.
func (v *volumeCommand) claimVolumes() ([]claimVolume, error) {
	claims, err := v.claims.List(v.podRoots()...)
	if err != nil {
		return nil, err
	}
	out := []claimVolume{}
	for _, view := range claims {
		users, err := v.podNames(view.Users)
		if err != nil {
			return nil, err
		}
		size, position := v.claimRequest(view.NamespacedName)
		out = append(out, claimVolume{view.Namespace, view.Name, size, users, position, view.Volume, view.Path})
	}
	return out, nil
}

// print prints the volumes of claims in a format; "" means a table.
func (v *volumeCommand) print(format string) error {
	claimVolumes, err := v.claimVolumes()
	switch {
	case err != nil:
		return err
	case format != "":
		return printer.WriteData(v.stdout, format, claimVolumes)
	case len(claimVolumes) == 0:
		fmt.Fprintln(v.stderr, "podd: no volumes of claims")
		return nil
	}
	lines := [][]string{{"NAMESPACE", "NAME", "REQUESTED", "USED BY", "DEFINED AT", "VOLUME"}}
	for _, volume := range claimVolumes {
		position, location := volume.DefinedAt, volume.Path
		if position != "" {
			position = paths.Shorten(position, paths.WorkingDir())
		}
		if volume.Volume != "" {
			location = "PersistentVolume " + volume.Volume
		}
		line := []string{volume.Namespace, volume.Name, printer.OrNone(volume.Requested), printer.OrNone(strings.Join(volume.UsedBy, ",")), printer.OrNone(position), location}
		for i := range line {
			line[i] = printer.Escape(line[i])
		}
		lines = append(lines, line)
	}
	_, err = io.WriteString(v.stdout, (&printer.Table{}).FormatLines(lines))
	return err
}

// remove removes the data of claims. If a manifest defines one of the claims, remove removes
// nothing and returns an error.
func (v *volumeCommand) remove(ctx context.Context, claims []string) error {
	var names []types.NamespacedName
	for _, text := range claims {
		namespace, name, ok := strings.Cut(text, "/")
		if !ok {
			namespace, name = v1.NamespaceDefault, text
		}
		key := types.NamespacedName{Namespace: namespace, Name: name}
		if _, position := v.claimRequest(key); position != "" {
			return fmt.Errorf("removing claim %s: it is still defined at %s; delete it there first", key, position)
		}
		names = append(names, key)
	}
	for _, name := range names {
		err := v.removeClaim(ctx, name)
		if err != nil && !errors.Is(err, claim.ErrLeftovers) {
			return err
		}
		if err != nil {
			fmt.Fprintf(v.stderr, "podd: warning: %v\n", err)
		}
		fmt.Fprintf(v.stderr, "podd: claim %s removed\n", name)
	}
	return nil
}

// removeClaim removes the data of a claim. If pods use the claim, the error contains their
// names.
func (v *volumeCommand) removeClaim(ctx context.Context, name types.NamespacedName) error {
	err := v.claims.Remove(ctx, name, v.podRoots()...)
	if !errors.Is(err, claim.ErrInUse) {
		return err
	}
	claims, listErr := v.claims.List(v.podRoots()...)
	for _, claimView := range claims {
		if users, namesErr := v.podNames(claimView.Users); claimView.NamespacedName == name && namesErr == nil && listErr == nil {
			return fmt.Errorf("%w: %s; remove these pods first", err, strings.Join(users, ","))
		}
	}
	return err
}

package cri

import (
	"context"
	"encoding/json"
	"slices"

	api "k8s.io/cri-api/pkg/apis/runtime/v1"

	"podd/runtime"
)

// Settings queries the settings that the runtime reports only in its verbose status.
func (c *Client) Settings(ctx context.Context) (runtime.Settings, error) {
	r, err := invoke(ctx, c, c.timeout, c.runtime.Status, &api.StatusRequest{Verbose: true})
	if err != nil {
		return runtime.Settings{}, wrapQueryError("settings", err)
	}
	return parseSettings(r.GetInfo()), nil
}

// parseSettings parses the info of a verbose status. Its format is not part of the CRI. Therefore
// values that cannot be parsed are treated like values that the runtime does not report.
func parseSettings(info map[string]string) runtime.Settings {
	var config struct {
		SandboxImage string `json:"sandboxImage"` // reported by containerd 1.6 and CRI-O
	}
	var cni struct { // reported by containerd
		PluginDirs    []string
		PluginConfDir string
		Networks      []struct {
			Config struct {
				Plugins []struct {
					Network struct {
						Type string `json:"type"`
						IPAM struct {
							Type string `json:"type"`
						} `json:"ipam"`
					}
				}
			}
		}
	}
	_ = json.Unmarshal([]byte(info["config"]), &config)
	_ = json.Unmarshal([]byte(info["cniconfig"]), &cni)
	s := runtime.Settings{SandboxImage: makePrintable(config.SandboxImage), CNIConfDir: makePrintable(cni.PluginConfDir)}
	for _, dir := range cni.PluginDirs {
		s.CNIPluginDirs = append(s.CNIPluginDirs, makePrintable(dir))
	}
	for _, network := range cni.Networks {
		for _, p := range network.Config.Plugins {
			for _, name := range []string{p.Network.Type, p.Network.IPAM.Type} {
				if name = makePrintable(name); name != "" && !slices.Contains(s.CNIPlugins, name) {
					s.CNIPlugins = append(s.CNIPlugins, name)
				}
			}
		}
	}
	return s
}

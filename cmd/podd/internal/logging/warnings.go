package logging

import (
	"io"
	"log/slog"

	"podd/cmd/podd/internal/config"
)

// WriteWarnings writes the warnings about a configuration to w: in the format json as records of a log, so
// that programs can parse all of stderr, and otherwise as lines that editors can parse. It writes them at
// every verbosity. If the configuration is invalid, cfg must be the zero value.
func WriteWarnings(w io.Writer, cfg *config.Logging, warnings []config.Warning) {
	if cfg.LogFormat != "json" {
		config.WriteWarnings(w, warnings)
		return
	}
	log := slog.New(newFormatHandler(w, cfg, slog.LevelWarn))
	for _, warning := range warnings {
		log.Warn("configuration problem found", "at", warning.Location(), "problem", warning.Text())
	}
}

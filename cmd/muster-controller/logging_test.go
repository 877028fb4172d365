// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"

	logsapi "k8s.io/component-base/logs/api/v1"
)

func TestLogFormats(t *testing.T) {
	t.Parallel()
	if usage := newCommand().Flags().Lookup("logging-format").Usage; !strings.Contains(usage, `"json"`) || !strings.Contains(usage, `"text"`) {
		t.Errorf("--logging-format: %s", usage)
	}
	c := logsapi.NewLoggingConfiguration()
	c.Format = logsapi.JSONLogFormat
	if err := logsapi.Validate(c, nil, nil); len(err) > 0 {
		t.Errorf("format json: %v", err)
	}
}

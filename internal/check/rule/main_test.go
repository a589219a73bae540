// SPDX-License-Identifier: Apache-2.0

package rule

import (
	"testing"

	"github.com/btfgen/btfgen/internal/testing/testinput"
)

func TestMain(m *testing.M) { testinput.Main(m) }

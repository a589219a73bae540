// SPDX-License-Identifier: Apache-2.0

package archive

// TemporaryFile is what NewFile does where there are no files in memory.
var TemporaryFile = temporaryFile

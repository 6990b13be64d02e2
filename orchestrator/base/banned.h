/* SPDX-License-Identifier: Apache-2.0 */
/* Calls that have hurt before (STYLE.md section 1). Included last by base.h, after the system headers that declare them. */
#pragma once

#pragma GCC poison strcpy strcat strncpy strncat sprintf vsprintf strtok gets
#undef alloca /* a macro in stdlib.h, which poison refuses */
#pragma GCC poison alloca
#pragma GCC poison atoi atol atoll atof rand srand system popen mktemp tmpnam
#pragma GCC poison gmtime localtime ctime asctime setlocale sscanf fscanf scanf

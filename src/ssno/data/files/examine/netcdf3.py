"""Find the variables of a classic (version 3) NetCDF file."""

import numpy as np
from scipy.io import netcdf_file

from ssno.data.files.examine.report import Record, Report, plain, read_through, why_not


def examine_netcdf3(path: str, budget: int) -> Record:
    """The variables of a classic NetCDF file, each at its place in the file."""
    report = Report("netcdf3", budget)
    with netcdf_file(path, "r", mmap=True) as file:
        report.answer["groups"][""] = {key: plain(value) for key, value in vars(file)["_attributes"].items()}
        for name, variable in file.variables.items():
            data = variable.data
            if why := why_not(data.dtype):
                report.refuse(name, why)
                continue
            base = data
            while isinstance(base.base, np.ndarray):
                base = base.base
            attributes = {key: plain(value) for key, value in vars(variable)["_attributes"].items()}
            offset = int(data.__array_interface__["data"][0] - base.__array_interface__["data"][0])
            dims = [str(dim) for dim in variable.dimensions]
            read_through(data, data.dtype.itemsize, report)
            more = {"offset": offset, "strides": list(data.strides), "dims": dims, "attributes": attributes}
            report.add(name, data.shape, data.dtype, **more)
            del data, base, variable
    return report.answer
